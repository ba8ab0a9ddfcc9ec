// Faults of links in a scenario: link_down, link_delay, link_loss, link_rate, link_reset.
#ifndef LOCKSTEP_CORE_PLAN_SCENARIO_LINK_H_
#define LOCKSTEP_CORE_PLAN_SCENARIO_LINK_H_

#include "core/plan/scenario.h"
#include "core/plan/toml_fields.h"

namespace lockstep {

inline bool IsLinkFault(std::string_view kind) { return kind.starts_with("link_"); }

// Into FaultSpec::ranks the rank `from`, into amounts: "to" (a rank; absent: all others), "one_way"
// (0: both directions), "delay", "jitter" (seconds), "loss" (a probability), "rate" (bytes a
// second).
void ReadLink(TomlFields& fields, FaultSpec& fault, int ranks);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_PLAN_SCENARIO_LINK_H_
