// The [[fault]] tables of a scenario.
#pragma once

#include <string>

#include "core/base/toml_fields.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::scenario {

// One of them, for a scenario of `ranks`; `path` is its name in mistakes.
FaultSpec ReadFault(const toml::table& table, const std::string& path, int ranks,
                    TomlMistakes& mistakes);

}  // namespace lockstep::stress::scenario
