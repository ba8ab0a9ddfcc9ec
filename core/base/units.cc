// Sizes are read with binary multiples, as nccl-tests reads them, and times with the usual
// suffixes. A text that is only partly understood is an error. Numbers are parsed by
// std::from_chars, so no locale changes their meaning.
#include "core/base/units.h"

#include <fmt/core.h>

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
      return number.value * unit.seconds;
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

std::string FormatDuration(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.3g} s", ns / 1e9);
}

}  // namespace lockstep
