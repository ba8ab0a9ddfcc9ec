// Runs a program, lets the judge read what is written down in any order of ranks, asks at random
// moments who is stuck, and compares with what the library knows.
#include "watch/fuzz/truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/random.h"
#include "watch/fuzz/findings.h"
#include "watch/fuzz/library.h"

namespace lockstep::watch::fuzz {
namespace {

using judge::Finding;

std::string Ranks(const std::set<int>& ranks) { return fmt::format("{}", fmt::join(ranks, ", ")); }

class Trial {
 public:
  Trial(const Program& program, const Spoil& spoil)
      : program_(program),
        spoil_(spoil),
        library_(program),
        judge_(program.ranks, [](int, std::uint64_t site) { return fmt::format("line {}", site); },
               {.races = AsksForRaces(program)}),
        read_(static_cast<std::size_t>(program.ranks)),
        said_left_(read_.size()),
        random_(Mix64(program.seed ^ 0x100c)) {}

  Assessment Run() {
    while (assessment_.wrong.empty() && library_.Advance()) {
      if (random_.Below(12) == 0) LookOnTheWay();
    }
    if (assessment_.wrong.empty()) LookAtTheEnd();
    return std::move(assessment_);
  }

 private:
  // How many events of the rank are there. One that is `late` has no processor to say that it left
  // the call which it left last.
  std::size_t Written(int rank, int late) const {
    const std::vector<Event>& events = library_.events(rank);
    const bool left = !events.empty() && events.back().phase == events::Phase::kLeave;
    return events.size() - (rank == late && left ? 1 : 0);
  }

  // As it was before the call returned, where that is not to be seen yet.
  Event Seen(int rank, std::size_t number, int late) const {
    Event event = library_.events(rank)[number];
    const bool newest = number + 1 == library_.events(rank).size();
    if (rank == late && newest) event.phase = events::BeforeLeft(event.phase);
    return event;
  }

  // What was read as the newest event may say by now that its call returned.
  void TakeLeave(int rank, int late) {
    const std::size_t read = read_[static_cast<std::size_t>(rank)];
    if (read == 0) return;
    Event newest = Seen(rank, read - 1, late);
    if (!events::HasLeft(newest.phase) || said_left_[static_cast<std::size_t>(rank)]) return;
    said_left_[static_cast<std::size_t>(rank)] = true;
    newest.phase = events::Phase::kLeave;
    newest.peer = 0;
    judge_.Take(rank, newest);
  }

  void TakeNext(int rank, int late) {
    const Event event = Seen(rank, read_[static_cast<std::size_t>(rank)]++, late);
    said_left_[static_cast<std::size_t>(rank)] = events::HasLeft(event.phase);
    judge_.Take(rank, event);
  }

  // Each rank's events in their order, the ranks in any.
  void ReadAll(int late) {
    std::vector<int> left(read_.size());
    for (std::size_t rank = 0; rank < left.size(); ++rank) left[rank] = static_cast<int>(rank);
    while (!left.empty()) {
      const std::size_t index = random_.Below(left.size());
      const int rank = left[index];
      const std::size_t written = Written(rank, late);
      const std::size_t& read = read_[static_cast<std::size_t>(rank)];
      TakeLeave(rank, late);
      for (std::uint64_t some = 1 + random_.Below(8); some > 0 && read < written; --some) {
        TakeNext(rank, late);
      }
      if (read < written) continue;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(index));
      if (library_.died(rank)) judge_.Ended(rank, judge::End::kDied);
    }
  }

  Verdict Ask(judge::StuckRanks& stuck, int late = -1) {
    ReadAll(late);
    stuck = judge_.Standstill();
    Verdict verdict;
    verdict.soft = stuck.soft;
    for (const judge::Wait& wait : stuck.waits) verdict.stuck.insert(wait.rank);
    return verdict;
  }

  // Who is said to be stuck never goes on, whatever happens next. Where something may be buffered,
  // `lockstep watch` waits for a while whether a rank leaves its call.
  void LookOnTheWay() {
    judge::StuckRanks stuck;
    const int late = static_cast<int>(random_.Below(read_.size()));
    Verdict verdict = Ask(stuck, library_.died(late) ? -1 : late);
    if (spoil_) spoil_(verdict);
    if (verdict.stuck.empty() || (verdict.soft && !library_.Waits(verdict.stuck))) return;
    for (std::uint64_t future = 0; future < 3; ++future) {
      Library copy = library_;
      copy.Reschedule(Mix64(program_.seed + future));
      while (copy.Advance()) {
      }
      for (const int rank : verdict.stuck) {
        if (copy.ActionAt(rank) != nullptr && copy.calls(rank) == library_.calls(rank)) continue;
        assessment_.wrong =
            fmt::format("innocent: rank {} was said to be stuck, and went on", rank);
        return;
      }
    }
  }

  void LookAtTheEnd() {
    judge::StuckRanks waits;
    Verdict verdict = Ask(waits);
    const std::set<int> stuck = library_.FindStuck();
    if (verdict.stuck.empty()) {
      judge_.AllEnded();
    } else {
      judge_.Hangs(waits);
    }
    verdict.findings = judge_.Tell();
    if (spoil_) spoil_(verdict);
    assessment_.hangs = !stuck.empty();
    assessment_.found = !verdict.findings.empty();
    assessment_.unknown = verdict.stuck != stuck && library_.HidesMatches();
    assessment_.wrong = Wrong(verdict, stuck);
  }

  std::string Wrong(const Verdict& verdict, const std::set<int>& stuck) const {
    for (const int rank : verdict.stuck) {
      if (!library_.FindBlocked().contains(rank)) {
        return fmt::format("innocent: rank {} is said to be stuck", rank);
      }
    }
    // After calls that differ in one place, nobody knows who meets whom.
    const bool broken = program_.error == Error::kWrongCall ||
                        program_.error == Error::kWrongRoot || program_.error == Error::kSwap ||
                        program_.error == Error::kSkip;
    const bool differ = broken && std::ranges::any_of(verdict.findings, [](const Finding& finding) {
                          return !finding.hangs;
                        });
    if (verdict.stuck != stuck && !library_.HidesMatches() && !differ) {
      return fmt::format("missed: ranks {} are stuck, said of {}", Ranks(stuck),
                         Ranks(verdict.stuck));
    }
    if (!verdict.stuck.empty() && verdict.findings.empty()) return "missed: ranks hang, no finding";
    if (library_.died(program_.faulty) && verdict.findings.empty()) return "missed: a rank died";
    return WrongAboutFindings(program_, library_, verdict.findings);
  }

  const Program& program_;
  const Spoil& spoil_;
  Library library_;
  judge::Judge judge_;
  std::vector<std::size_t> read_;
  std::vector<bool> said_left_;  // what was read last says that its call was left
  Random random_;
  Assessment assessment_;
};

}  // namespace

Assessment Assess(const Program& program, const Spoil& spoil) {
  return Trial(program, spoil).Run();
}

}  // namespace lockstep::watch::fuzz
