// What is measured of the links between ranks. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bench/plan/plan.h"
#include "core/base/named_members.h"
#include "core/base/status.h"

namespace lockstep::bench::links {

struct Axes {
  std::int64_t bytes = 1 << 20;
  bool one_at_a_time = false;  // one pair, else as many disjoint ones as there are
  std::optional<bool> all_at_once =
      std::nullopt;          // also every rank with all others; none: where it can be done
  double slow_factor = 1.5;  // a link that is slower than usual by less is not slow
};

// Messages between pairs of ranks, back and forth, beside each other: the pairs are disjoint, and
// the first rank of a pair begins. Or, without pairs, between all ranks of `everyone` at once.
struct LinkExchange {
  static constexpr char kName[] = "link_exchange";
  std::vector<std::pair<int, int>> pairs = {};
  std::vector<int> everyone = {};
  std::int64_t bytes = 1 << 20;  // of the messages that tell the bandwidth
  bool retest = false;           // measured only when an earlier pass finds it suspicious
  double slow_factor = 1.5;      // as of Axes: the plan decides the verdict, too

  bool operator==(const LinkExchange&) const = default;
  template <typename Fields, typename S>
  static void Describe(Fields& fields, S& step) {
    LOCKSTEP_FIELDS(fields, step, pairs, everyone, bytes, retest, slow_factor);
  }
};

// Those of the plan's cases.
std::vector<LinkExchange> ExchangesOf(const plan::Plan& plan);

// Rounds in which every pair of `nodes` (ranks, ascending; at least 2) meets once, disjoint pairs
// at the same time; all at once; and the pairs one by one, to be measured again where a slow one is
// suspected. kUnsupported where the backend cannot do what was asked for.
Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size,
                          const std::vector<int>& nodes);

// Every pair of 0 … nodes - 1 once: rounds of disjoint pairs, nodes - 1 of them, or as many as
// nodes where that is odd and one has a rest (the circle method of round-robin tournaments;
// E. Lucas, Récréations mathématiques II, 1883).
std::vector<std::vector<std::pair<int, int>>> RoundRobin(int nodes);

// Bytes of the small messages of a LinkExchange: pings, readiness, acknowledgements.
inline constexpr std::int64_t kPingBytes = 8;

}  // namespace lockstep::bench::links
