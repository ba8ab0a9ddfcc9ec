// The [[fault]] tables of a scenario.
#ifndef LOCKSTEP_STRESS_SCENARIO_SCENARIO_FAULT_H_
#define LOCKSTEP_STRESS_SCENARIO_SCENARIO_FAULT_H_

#include <string>

#include "core/base/toml_fields.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::scenario {

// One of them, for a scenario of `ranks`; `path` is its name in mistakes.
FaultSpec ReadFault(const toml::table& table, const std::string& path, int ranks,
                    TomlMistakes& mistakes);

}  // namespace lockstep::stress::scenario

#endif  // LOCKSTEP_STRESS_SCENARIO_SCENARIO_FAULT_H_
