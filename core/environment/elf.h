// What a shared library offers, read from its file: nothing of it runs.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace lockstep::environment {

// Ok when the file is a shared library (ELF, 64 bits, this machine's byte order) that defines
// `symbol` for others. kInvalidInput says what it is instead.
Status CheckDefines(const std::string& path, std::string_view symbol);

}  // namespace lockstep::environment
