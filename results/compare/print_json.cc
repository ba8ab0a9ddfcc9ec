// A comparison as one JSON object. Numbers that are not finite become null, because JSON has no
// others.
#include <nlohmann/json.hpp>

#include "core/base/named_members.h"
#include "core/base/version.h"
#include "results/compare/print.h"

namespace lockstep::results::compare {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Effect95& effect) { return {LOCKSTEP_PAIRS(effect, estimate, low, high)}; }

Json ToJson(const SideOfCase& side) {
  return {LOCKSTEP_PAIRS(side, launches, timed, failed, unknown, outcome, median_ns)};
}

const char* NameOf(OutcomeChange change) {
  constexpr const char* kNames[] = {"none", "worse", "better"};
  return kNames[static_cast<std::size_t>(change)];
}

Json ToJson(const CaseComparison& one) {
  Json ranks = Json::array();
  for (const RankChange& rank : one.slower_ranks) {
    ranks.push_back(
        {LOCKSTEP_PAIRS(rank, rank, what), {"effect", ToJson(rank.effect)}, {"q", rank.q}});
  }
  return {{"program", one.program},
          {"case", one.name},
          LOCKSTEP_PAIRS(one, backend, ranks),
          {"verdict", std::string(NameOf(one.change))},
          {"outcome_change", NameOf(one.outcome_change)},
          {"effect", ToJson(one.effect)},
          LOCKSTEP_PAIRS(one, p, q, min_effect),
          {"base", ToJson(one.base)},
          {"candidate", ToJson(one.candidate)},
          {"slower_ranks", std::move(ranks)},
          LOCKSTEP_PAIRS(one, why, resolve)};
}

}  // namespace

std::string FormatJson(const LaunchComparison& comparison) {
  Json json = {{"lockstep", ThisVersionText()},
               {"headline", comparison.headline},
               {"exit_code", static_cast<int>(comparison.exit_code)},
               {"launches",
                {{"base", comparison.base_launches}, {"candidate", comparison.candidate_launches}}},
               LOCKSTEP_PAIRS(comparison, interleaved, drift),
               {"corrected_for", comparison.tests},
               {"other_version", OtherVersionText(comparison.differences)},
               {"cases", Json::array()},
               {"differences", Json::array()},
               {"not_read", comparison.notes}};
  for (const CaseComparison& one : comparison.cases) json["cases"].push_back(ToJson(one));
  for (const Difference& one : comparison.differences) {
    json["differences"].push_back({LOCKSTEP_PAIRS(one, fact, base, candidate)});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::results::compare
