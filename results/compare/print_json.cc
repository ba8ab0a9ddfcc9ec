// A comparison as one JSON object. Numbers that are not finite become null, because JSON has no
// others.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "results/compare/print.h"

namespace lockstep::results::compare {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json ToJson(const Effect95& effect) {
  return {{"estimate", Number(effect.estimate)},
          {"low", Number(effect.low)},
          {"high", Number(effect.high)}};
}

Json ToJson(const SideOfCase& side) {
  return {{"launches", side.launches}, {"timed", side.timed},
          {"failed", side.failed},     {"unknown", side.unknown},
          {"outcome", side.outcome},   {"median_ns", Number(side.median_ns)}};
}

const char* NameOf(OutcomeChange change) {
  switch (change) {
    case OutcomeChange::kNone:
      return "none";
    case OutcomeChange::kWorse:
      return "worse";
    case OutcomeChange::kBetter:
      return "better";
  }
  return "?";
}

Json ToJson(const CaseComparison& one) {
  Json ranks = Json::array();
  for (const RankChange& rank : one.slower_ranks) {
    ranks.push_back(
        {{"rank", rank.rank}, {"what", rank.what}, {"effect", ToJson(rank.effect)}, {"q", rank.q}});
  }
  return {{"program", one.program},
          {"case", one.name},
          {"backend", one.backend},
          {"ranks", one.ranks},
          {"verdict", std::string(NameOf(one.change))},
          {"outcome_change", NameOf(one.outcome_change)},
          {"effect", ToJson(one.effect)},
          {"p", one.p},
          {"q", one.q},
          {"min_effect", one.min_effect},
          {"base", ToJson(one.base)},
          {"candidate", ToJson(one.candidate)},
          {"slower_ranks", std::move(ranks)},
          {"why", one.why},
          {"resolve", one.resolve}};
}

}  // namespace

std::string FormatJson(const LaunchComparison& comparison) {
  Json json = {{"lockstep", ThisVersionText()},
               {"headline", comparison.headline},
               {"exit_code", static_cast<int>(comparison.exit_code)},
               {"launches",
                {{"base", comparison.base_launches}, {"candidate", comparison.candidate_launches}}},
               {"interleaved", comparison.interleaved},
               {"drift", comparison.drift},
               {"corrected_for", comparison.tests},
               {"other_version", OtherVersionText(comparison.differences)},
               {"cases", Json::array()},
               {"differences", Json::array()},
               {"not_read", comparison.notes}};
  for (const CaseComparison& one : comparison.cases) json["cases"].push_back(ToJson(one));
  for (const Difference& one : comparison.differences) {
    json["differences"].push_back(
        {{"fact", one.fact}, {"base", one.base}, {"candidate", one.candidate}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::results::compare
