// Ranks whose samples are written out, as workers leave them: what a survey is to judge.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/links/cases.h"
#include "bench/links/link_survey.h"
#include "bench/measure/protocol.h"
#include "bench/measure/sample_book.h"

namespace lockstep::bench::links {

inline constexpr int kRounds = 7;  // the first calibrates

// Times of a message from rank to rank, ns; `pass` is 1 or 2.
using Cost = std::function<double(int from, int to, int pass)>;
// What a rank waited for a processor while it met another one, ns.
using Wait = std::function<double(int rank, int other, int pass, int round)>;

// What the kernel of a rank knows of the connection to another one.
struct Kernel {
  double round_trip_ns = std::nan("");  // it knows nothing
  double segments = 0;
  double lost = 0;
};
using Kernels = std::function<Kernel(int rank, int other)>;
// What others of the host took of an exchange of a round that this rank leads, ns: nobody says so.
using Stall = std::function<double(int rank, int other, int round, int exchange)>;

class Cluster {
 public:
  Cluster(
      std::vector<std::string> hosts, Cost latency, Cost sent,
      Wait wait = [](int, int, int, int) { return 20.0; }, int rounds = kRounds,
      Kernels kernels = [](int, int) { return Kernel(); },
      Stall stall = [](int, int, int, int) { return 0.0; }, int exchanges_a_round = 1)
      : rounds_(rounds),
        hosts_(std::move(hosts)),
        latency_(std::move(latency)),
        sent_(std::move(sent)),
        wait_(std::move(wait)),
        kernels_(std::move(kernels)),
        stall_(std::move(stall)),
        exchanges_a_round_(exchanges_a_round) {
    std::vector<int> all(hosts_.size());
    std::iota(all.begin(), all.end(), 0);
    plan_ = *Expand({}, {}, static_cast<int>(hosts_.size()), all);
    exchanges_ = ExchangesOf(plan_);
    book_.emplace(static_cast<int>(hosts_.size()), plan_.cases.size(), TickScale{});
    MeasureAll();
  }
  // Another repetition, which costs otherwise.
  void Repeat(Cost latency, Cost sent) {
    latency_ = std::move(latency);
    sent_ = std::move(sent);
    book_->BeginRepetition();
    MeasureAll();
  }

  LinkSurvey Survey(bool within_hosts = false) const {
    return LinkSurvey(plan_, {hosts_, within_hosts});
  }
  std::vector<std::string> Retests(bool within_hosts = false) {
    std::vector<std::string> names;
    for (const std::size_t i : Survey(within_hosts).Retests(*book_, book_->repetitions() - 1)) {
      Measure(i, 2);
      names.push_back(plan_.cases[i].name);
    }
    return names;
  }
  results::store::Run Judge(bool within_hosts = false) {
    Retests(within_hosts);
    results::store::Run run;
    run.judgement.verdict = verdict::Verdict::kPass;
    Survey(within_hosts).AddTo(*book_, book_->repetitions() - 1, run);
    return run;
  }

 private:
  const LinkExchange& LinksOf(std::size_t i) const { return exchanges_[i]; }
  void MeasureAll() {
    for (std::size_t i = 0; rounds_ > 0 && i < plan_.cases.size(); ++i) {
      if (!LinksOf(i).retest) Measure(i, 1);
    }
  }
  void Leave(int rank, std::size_t i, int round, std::vector<double> parts) {
    std::string bytes;
    const auto index = static_cast<std::uint32_t>(i);
    AppendTo(bytes, measure::SampleRecord{index, static_cast<std::uint32_t>(round), 1, 2});
    AppendTo(bytes, measure::PartsRecord{index, std::move(parts)});
    book_->Add(rank, bytes);
  }
  void Measure(std::size_t i, int pass) {
    const LinkExchange& links = LinksOf(i);
    for (int round = 0; round < rounds_; ++round) {
      const double noise = round == 0 ? 50 : 1 + 0.02 * round;
      for (const int rank : links.everyone) Leave(rank, i, round, {4e6 * noise});
      for (const auto& [a, b] : links.pairs) {
        const double wait_a = wait_(a, b, pass, round), wait_b = wait_(b, a, pass, round);
        const auto leave = [&](int rank, int other, double latency, double sent, double wait) {
          const Kernel kernel = kernels_(rank, other);
          Leave(rank, i, round,
                {latency * noise, sent * noise, wait, wait, kernel.round_trip_ns, kernel.segments,
                 kernel.lost});
        };
        // Of each exchange one iteration that a leads, and one that b leads.
        for (int exchange = 0; exchange < exchanges_a_round_; ++exchange) {
          const double stall_a = stall_(a, b, round, exchange);
          const double stall_b = stall_(b, a, round, exchange);
          leave(a, b, latency_(a, b, pass) + stall_a, sent_(a, b, pass) + stall_a, wait_a);
          leave(b, a, 0, 0, wait_b);
          leave(a, b, 0, 0, wait_a);
          leave(b, a, latency_(b, a, pass) + stall_b, sent_(b, a, pass) + stall_b, wait_b);
        }
      }
    }
  }

  int rounds_;
  std::vector<std::string> hosts_;
  Cost latency_, sent_;
  Wait wait_;
  Kernels kernels_;
  Stall stall_;
  int exchanges_a_round_;  // of a pair
  plan::Plan plan_;
  std::vector<LinkExchange> exchanges_;
  std::optional<measure::SampleBook> book_;
};

inline bool IsBetween(int from, int to, int a, int b) {
  return (from == a && to == b) || (from == b && to == a);
}
inline const Cost kUsualLatency = [](int from, int to, int) { return 50e3 + 100 * (from + to); };
inline const Cost kUsualSent = [](int from, int to, int) { return 1e6 + 1000 * (from + 2 * to); };
inline const std::vector<std::string> kFour = {"node1", "node2", "node3", "node4"};

}  // namespace lockstep::bench::links
