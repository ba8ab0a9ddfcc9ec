// Faults of links in a scenario: link_down, link_delay, link_loss, link_rate, link_reset between
// two ranks; the same, network_reorder and network_block between the hosts of two ranks.
#pragma once

#include "core/base/toml_fields.h"
#include "stress/faults/fault_registry.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::scenario {

// Into FaultSpec::ranks the rank `from`, into amounts: "to" (a rank; absent: all others), "one_way"
// (0: both directions), "delay", "jitter" (seconds), "loss", "share" (probabilities), "rate" (bytes
// a second), "port" (absent: any), "refuse".
void ReadLink(TomlFields& fields, const stress::faults::FaultInfo& info, FaultSpec& fault,
              int ranks);

}  // namespace lockstep::stress::scenario
