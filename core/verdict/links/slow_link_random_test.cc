// A thousand runs on machines whose scheduler lets everybody wait, in virtual time: workers, relays
// and the agents that look. What is well is never accused, and a true delay is named.
// LOCKSTEP_TEST_SEED repeats a run.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/verdict/link_traffic.h"
#include "core/verdict/links/slow_link.h"
#include "core/verdict/links/testing/link_history.h"

namespace lockstep::verdict::links {
namespace {

using ::testing::ElementsAre;

constexpr double kBegin = 1000;
constexpr int kPortions = 40;

struct Machine {
  double wait_s = 0.00005;  // of whoever is to run, on average
  bool stops = false;       // agents are stopped for 50 ms at random
  bool relayed = false;
  double every_s = 0.02;  // between two portions of one way
};

// Times at which somebody was kept from running, and for how long.
class Timeline {
 public:
  void Wait(double at_s, double seconds) { waits_.emplace_back(at_s, seconds); }
  void Sort() { std::sort(waits_.begin(), waits_.end()); }
  double Until(double at_s) const {
    double sum_s = 0;
    for (const auto& [begin_s, seconds] : waits_) {
      if (begin_s > at_s) break;
      sum_s += std::min(seconds, at_s - begin_s);
    }
    return sum_s;
  }

 private:
  std::vector<std::pair<double, double>> waits_;
};

class Trial {
 public:
  Trial(const Machine& machine, std::uint64_t seed) : machine_(machine), random_(seed) {
    for (int rank = 0; rank < history_.size(); ++rank) Stop(rank);
    for (int from = 0; from < history_.size(); ++from) {
      for (int to = 0; to < history_.size(); ++to) {
        if (from != to) Send(from, to, 0);
      }
    }
  }
  // Bytes between the two are to be `seconds` longer on the way.
  void Delay(int one, int other, double seconds) {
    Send(one, other, seconds);
    Send(other, one, seconds);
  }

  std::vector<Finding> Find() {
    for (int rank = 0; rank < history_.size(); ++rank) {
      Look(rank);
      waits_[rank].Sort();
      history_.end(rank).waited_s = [this, rank](double at_s) { return waits_[rank].Until(at_s); };
    }
    const std::vector<RankEvidence> evidence = history_.Evidence();
    return FindSlowLinks(PointersTo(evidence));
  }

 private:
  double Exponential(double mean_s) { return -mean_s * std::log(1 - random_.Uniform()); }
  double EndS() const { return kBegin + machine_.every_s * (kPortions + 4); }

  void Stop(int rank) {
    if (!machine_.stops) return;
    for (double at_s = kBegin; at_s < EndS(); at_s += 0.05 + Exponential(0.2)) {
      stops_[rank].push_back(at_s);
    }
  }
  // When the agent of `rank`, ready at `at_s`, runs.
  double Runs(int rank, double at_s) {
    for (const double stop_s : stops_[rank]) {
      if (at_s >= stop_s && at_s < stop_s + 0.05) at_s = stop_s + 0.05;
    }
    return at_s;
  }

  void Send(int from, int to, double delay_s) {
    LinkWay& way = history_.way(from, to);
    way = LinkWay();
    way.relayed = machine_.relayed;
    // Acknowledgements wait, too: a healthy round trip looks as long as that of a slow link.
    way.round_trip_s = std::max(2 * delay_s, 0.04 * random_.Uniform());
    double came_s = 0;
    for (int i = 0; i < kPortions; ++i) {
      const double written_s = kBegin + machine_.every_s * (i + random_.Uniform());
      double at_s = written_s + 0.00003 + delay_s;
      if (machine_.relayed) {
        const double wait_s = Exponential(machine_.wait_s);
        waits_[std::min(from, to)].Wait(at_s, wait_s);
        at_s = Runs(std::min(from, to), at_s + wait_s);
      } else if (random_.Uniform() < 0.2) {
        // The reader has its socket locked and does not run: what comes is not counted yet.
        const double wait_s = Exponential(machine_.wait_s);
        waits_[to].Wait(at_s, wait_s);
        at_s += wait_s;
      }
      came_s = std::max(came_s, at_s);
      way.portions.push_back({written_s, came_s, machine_.relayed ? delay_s : 0, 0});
    }
    std::sort(way.portions.begin(), way.portions.end(),
              [](const auto& a, const auto& b) { return a.written_s < b.written_s; });
    came_s = 0;
    for (auto& portion : way.portions) portion.came_s = came_s = std::max(came_s, portion.came_s);
  }

  void Look(int rank) {
    double at_s = kBegin - 0.1 + 0.004 * random_.Uniform();
    while (at_s < EndS()) {
      LinkLook look;
      look.began_s = Runs(rank, at_s);
      look.ended_s = Runs(rank, look.began_s + 0.0001 + Exponential(machine_.wait_s / 4));
      look.at_s = look.began_s + random_.Uniform() * (look.ended_s - look.began_s);
      if (look.ended_s - look.began_s <= 0.002) history_.end(rank).looks.push_back(look);
      at_s = look.ended_s + 0.004 + Exponential(machine_.wait_s);
    }
  }

  const Machine machine_;
  Random random_;
  LinkHistory history_;
  std::map<int, Timeline> waits_;
  std::map<int, std::vector<double>> stops_;
};

std::uint64_t Seed() {
  const char* const text = std::getenv("LOCKSTEP_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

Machine MachineOf(int number) {
  constexpr double kWaits[] = {0.00005, 0.002, 0.006};  // beside 0, 4 and 8 busy loops
  return {.wait_s = kWaits[number % 3],
          .stops = number / 3 % 2 == 1,
          .relayed = number / 6 % 2 == 1,
          .every_s = number / 12 % 2 == 1 ? 0.02 : 0.1};
}

TEST(SlowLinkAtRandom, OfAThousandHealthyRunsNoneAccusesALink) {
  for (int number = 0; number < 1000; ++number) {
    const std::vector<Finding> findings =
        Trial(MachineOf(number), Seed() * 1000 + static_cast<std::uint64_t>(number)).Find();
    EXPECT_TRUE(findings.empty()) << number << ": " << findings[0].message;
  }
}

TEST(SlowLinkAtRandom, TwentyMillisecondsAreNamedOnAQuietMachine) {
  int named = 0, proved = 0;
  for (int number = 0; number < 200; ++number) {
    Machine machine = MachineOf(number * 6);
    Trial trial(machine, Seed() * 2000 + static_cast<std::uint64_t>(number));
    trial.Delay(1, 2, 0.02);
    const std::vector<Finding> findings = trial.Find();
    if (findings.empty()) continue;
    EXPECT_THAT(findings[0].culprits, ElementsAre(1, 2)) << findings[0].message;
    ++named;
    proved += findings[0].proved ? 1 : 0;
  }
  EXPECT_GE(named, 190);
  EXPECT_GE(proved, 190);
}

TEST(SlowLinkAtRandom, OnABusyMachineNoOtherLinkIsNamed) {
  int named = 0;
  for (int number = 0; number < 200; ++number) {
    Trial trial(MachineOf(number), Seed() * 3000 + static_cast<std::uint64_t>(number));
    trial.Delay(1, 2, 0.06);
    for (const Finding& finding : trial.Find()) {
      EXPECT_THAT(finding.culprits, ElementsAre(1, 2)) << number << ": " << finding.message;
      ++named;
    }
  }
  EXPECT_GE(named, 100);
}

}  // namespace
}  // namespace lockstep::verdict::links
