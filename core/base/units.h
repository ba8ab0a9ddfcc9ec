// Reading quantities as people type them, and writing them as people read them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace lockstep {

// Bytes from "8", "64K", "128M", "2G", "1T", also with "B" or "iB" behind ("64KiB"); binary
// multiples as in nccl-tests. Errors name `option`, the text and what is accepted.
Result<std::int64_t> ParseBytes(std::string_view option, std::string_view text);

// Seconds from "20", "20s", "1.5s", "250ms", "100us", "2m", "1h". kInvalidInput: no such text, a
// negative time, or one of more than 1e9 s.
Result<double> ParseSeconds(std::string_view option, std::string_view text);

// "8 B", "64 KiB", "25 MiB", "1.5 GiB": exact where short, else one decimal.
std::string FormatBytes(std::int64_t bytes);

// The half width of a figure's interval where no interval is known.
inline constexpr double kNoHalfWidth = std::numeric_limits<double>::quiet_NaN();

// The half width of a figure that has no digit below `step`, a power of ten.
double HalfWidthOfStep(double step);

// `value` with the digits that its interval supports, without an exponent: the last digit is a
// power of ten of at most a third of `half_width`, half of the interval in the unit of the value.
// "25900" for 25948.3 and 2335, "26000" for 4000. Three digits where the half width is no positive
// number; never more than seven, and one at least. "-" for what is not finite.
std::string FormatFigure(double value, double half_width = kNoHalfWidth);
// The same with its sign, "+1.3" or "-20", for changes: one far within its interval is "+0".
std::string FormatChange(double value, double half_width = kNoHalfWidth);
// The ends of an interval, with the digits of the figure in it: "0.968 .. 1.000".
std::string FormatInterval(double low, double high, std::string_view between = " to ");

// "850 ns", "12.3 us", "4.56 ms", "2.1 s": by FormatFigure, in the unit that suits the value, and
// without zeros at the end where no half width is known. "-" for what is not finite.
std::string FormatDuration(double ns, double half_width_ns = kNoHalfWidth);

}  // namespace lockstep
