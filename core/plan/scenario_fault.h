// The [[fault]] tables of a scenario.
#ifndef LOCKSTEP_CORE_PLAN_SCENARIO_FAULT_H_
#define LOCKSTEP_CORE_PLAN_SCENARIO_FAULT_H_

#include <string>

#include "core/plan/scenario.h"
#include "core/plan/toml_fields.h"

namespace lockstep::plan {

// One of them, for a scenario of `ranks`; `path` is its name in mistakes.
FaultSpec ReadFault(const toml::table& table, const std::string& path, int ranks,
                    TomlMistakes& mistakes);

}  // namespace lockstep::plan

#endif  // LOCKSTEP_CORE_PLAN_SCENARIO_FAULT_H_
