// Reading and writing quantities as people type them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace lockstep {

// Bytes from "8", "64K", "128M", "2G", "1T", also with "B" or "iB" behind ("64KiB"); binary
// multiples as in nccl-tests. Errors name `option`, the text and what is accepted.
Result<std::int64_t> ParseBytes(std::string_view option, std::string_view text);

// Seconds from "20", "20s", "1.5s", "250ms", "100us", "2m", "1h".
Result<double> ParseSeconds(std::string_view option, std::string_view text);

// "8 B", "64 KiB", "25 MiB", "1.5 GiB": exact where short, else one decimal.
std::string FormatBytes(std::int64_t bytes);

// "850 ns", "12.3 us", "4.56 ms", "2.1 s".
std::string FormatDuration(double ns);

}  // namespace lockstep
