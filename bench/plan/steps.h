// What an iteration of a case is, and what it tells.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/ddp/manifest_model.h"

namespace lockstep::bench::plan {

// How the figures of all ranks become one value: that of the rank whose iteration took longest, so
// that parts of it add up; the mean; the maximum.
enum class RankReduction : std::uint8_t { kSlowest, kMean, kMax };
inline std::string_view NameOf(RankReduction reduction) {
  constexpr std::string_view kNames[] = {"slowest", "mean", "max"};
  return kNames[static_cast<std::size_t>(reduction)];
}

// A figure of every iteration beside its duration.
struct PartInfo {
  std::string name;   // "forward_ns"
  std::string units;  // "ns"; "" for a ratio
  RankReduction over = RankReduction::kSlowest;

  bool operator==(const PartInfo&) const = default;
};

// A model by name; the tensors travel with the plan, so that a run can be repeated from its file.
struct PlannedModel {
  std::string name;
  ddp::ModelTensors tensors;
};

// What an iteration consists of. Only the kind of benchmark knows the options: a plan carries the
// text of a JSON object (step_fields.h).
struct StepPlan {
  std::string name;  // "ddp_step"; "": only the operations of the case
  std::string fields = "{}";

  bool operator==(const StepPlan&) const = default;
};

// How rounds visit a case whose iterations have a rhythm of their own.
struct Visits {
  double batch_ns = 0;                // a visit lasts about so long, without warm-up; 0: as others
  std::uint32_t multiple = 1;         // of iterations
  std::uint32_t most_iterations = 0;  // a multiple of it
  std::uint32_t fewest_rounds = 0;    // until there are so many, the time budget is stretched
};

}  // namespace lockstep::bench::plan
