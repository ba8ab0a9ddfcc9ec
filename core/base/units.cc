// What is printed claims no more digits than are known: here is the one rule for that, of which
// results/python/lockstep/digits.py is the twin. Files and exports hold what was measured.
// Sizes are read with binary multiples, as nccl-tests reads them, and times with the usual
// suffixes. A text that is only partly understood is an error. Numbers are parsed by
// std::from_chars, so no locale changes their meaning.
#include "core/base/units.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace lockstep {
namespace {

struct Number {
  double value;
  std::string_view suffix;
};

// Splits "1.5GiB" into 1.5 and "GiB"; an empty suffix is allowed.
bool Split(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error != std::errc() || !std::isfinite(number.value)) return false;
  number.suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  return true;
}

// The power of 1024 of "K", "kB", "MiB" …; -1 when it is no such suffix.
int BinaryPower(std::string_view suffix) {
  if (suffix.empty() || suffix == "B" || suffix == "b") return 0;
  constexpr std::string_view kLetters = "KMGT";
  const char letter = static_cast<char>(suffix[0] >= 'a' ? suffix[0] - 'a' + 'A' : suffix[0]);
  const std::size_t power = kLetters.find(letter);
  const std::string_view rest = suffix.substr(1);
  if (power == std::string_view::npos) return -1;
  if (!rest.empty() && rest != "B" && rest != "iB" && rest != "b") return -1;
  return static_cast<int>(power) + 1;
}

constexpr int kUsualDigits = 3;
constexpr int kMostDigits = 7;
// A step of the last digit that is shown is at most this part of the half width, so that rounding
// moves a figure by a sixth of it at most.
constexpr double kStepsOfHalfWidth = 3;

// The power of ten of the first digit, once the value is rounded to so many.
int PlaceOf(double value, int digits) {
  const std::string text = fmt::format("{:.{}e}", value, digits - 1);
  return std::stoi(text.substr(text.find('e') + 1));
}

// The power of ten of the last digit that is known.
int LastPlace(double value, double half_width) {
  constexpr int kExact = 15;
  const bool known = std::isfinite(half_width) && half_width > 0;
  if (!known) return value == 0 ? 0 : PlaceOf(value, kUsualDigits) - (kUsualDigits - 1);
  const int step = PlaceOf(half_width / kStepsOfHalfWidth, kExact);
  return value == 0 ? step : std::max(step, PlaceOf(value, kMostDigits) - (kMostDigits - 1));
}

// `value` up to the digit of this power of ten.
std::string RoundedText(double value, int last) {
  const double step = std::pow(10.0, std::max(0, last));
  const double rounded = last > 0 ? std::round(value / step) * step : value;
  std::string text = fmt::format("{:.{}f}", rounded, std::max(0, -last));
  // No sign is left of what is rounded to zero.
  if (text.find_first_of("123456789") == std::string::npos && text.front() == '-') text.erase(0, 1);
  return text;
}

}  // namespace

Result<std::int64_t> ParseBytes(std::string_view option, std::string_view text) {
  Number number;
  const int power = Split(text, number) ? BinaryPower(number.suffix) : -1;
  if (power < 0) {
    return InvalidInput("{}: '{}' is not a size; write bytes such as 8, 64K, 128M or 1G", option,
                        text);
  }
  const double bytes = number.value * std::pow(1024.0, power);
  if (bytes < 0 || bytes > 9.0e18) {
    return InvalidInput("{}: '{}' is {}; write bytes such as 8, 64K, 128M or 1G", option, text,
                        bytes < 0 ? "negative" : "too large");
  }
  if (bytes != std::floor(bytes)) {
    return InvalidInput("{}: '{}' is not a whole number of bytes; write such as 8, 64K or 1.5M",
                        option, text);
  }
  return static_cast<std::int64_t>(bytes);
}

Result<double> ParseSeconds(std::string_view option, std::string_view text) {
  static constexpr double kMostSeconds = 1e9;  // as nanoseconds with a margin in 64 bits
  struct Unit {
    std::string_view suffix;
    double seconds;
  };
  static constexpr std::array<Unit, 8> kUnits = {{{"", 1},
                                                  {"s", 1},
                                                  {"ms", 1e-3},
                                                  {"us", 1e-6},
                                                  {"ns", 1e-9},
                                                  {"m", 60},
                                                  {"min", 60},
                                                  {"h", 3600}}};
  Number number;
  if (Split(text, number)) {
    for (const Unit& unit : kUnits) {
      if (number.suffix != unit.suffix) continue;
      if (number.value < 0) {
        return InvalidInput("{}: '{}' is negative; write seconds such as 20, 1.5s, 250ms or 2m",
                            option, text);
      }
      const double seconds = number.value * unit.seconds;
      if (seconds > kMostSeconds) {
        return InvalidInput("{}: '{}' is more than {:.0f} s; write seconds such as 20 or 2m",
                            option, text, kMostSeconds);
      }
      return seconds;
    }
  }
  return InvalidInput("{}: '{}' is not a duration; write seconds such as 20, 1.5s, 250ms or 2m",
                      option, text);
}

std::string FormatBytes(std::int64_t bytes) {
  static constexpr std::array<const char*, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  if (value == std::floor(value)) return fmt::format("{:.0f} {}", value, kNames[unit]);
  return fmt::format("{:.1f} {}", value, kNames[unit]);
}

double HalfWidthOfStep(double step) { return kStepsOfHalfWidth * step; }

std::string FormatFigure(double value, double half_width) {
  if (!std::isfinite(value)) return "-";
  const int last = LastPlace(value, half_width);
  return RoundedText(value, value == 0 ? last : std::min(last, PlaceOf(value, 1)));
}

std::string FormatChange(double value, double half_width) {
  if (!std::isfinite(value)) return "-";
  std::string text = RoundedText(value, LastPlace(value, half_width));
  return text.front() == '-' ? text : "+" + text;
}

std::string FormatInterval(double low, double high, std::string_view between) {
  if (!std::isfinite(low) || !std::isfinite(high)) return "-";
  const double half_width = (high - low) / 2;
  return FormatFigure(low, half_width).append(between) + FormatFigure(high, half_width);
}

std::string FormatDuration(double ns, double half_width_ns) {
  if (!std::isfinite(ns)) return "-";
  struct Unit {
    const char* name;
    double ns;
  };
  static constexpr std::array<Unit, 4> kUnits = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  const bool known = std::isfinite(half_width_ns) && half_width_ns > 0;
  const int place = PlaceOf(ns, kUsualDigits);
  const Unit& unit = kUnits[static_cast<std::size_t>(std::clamp(place / 3, 0, 3))];
  // No clock tells parts of a nanosecond.
  if (unit.ns == 1 && !known) return fmt::format("{:.0f} ns", ns);
  std::string text = FormatFigure(ns / unit.ns, half_width_ns / unit.ns);
  // Zeros at the end are digits that an interval supports, or nothing.
  if (!known && text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text + " " + unit.name;
}

}  // namespace lockstep
