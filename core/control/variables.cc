#include "core/control/variables.h"

#include <fmt/core.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>

#include "core/base/file_text.h"
#include "core/base/process_stat.h"

namespace lockstep::control {
namespace {

// `environment`: "NAME=value", each with a NUL behind it.
bool Holds(const std::string& environment, const char* name) {
  const std::string start = std::string(name) + "=";
  if (environment.starts_with(start)) return true;
  return environment.find(std::string(1, '\0') + start) != std::string::npos;
}

}  // namespace

Result<int> VariableNumber(const char* name, int least, int most, const char* remedy) {
  const std::string text = VariableText(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || value < least ||
      value > most) {
    return InvalidInput("{}='{}' in the environment is not a number from {} to {}; {}", name, text,
                        least, most, remedy);
  }
  return value;
}

// A launcher does not have what it sets for its ranks. What stands between it and this process (a
// shell, a debugger) has both.
bool IsInner(const char* one, const char* other) {
  constexpr int kMostAncestors = 64;
  pid_t ancestor = getppid();
  for (int up = 0; up < kMostAncestors && ancestor > 1; ++up) {
    const std::string environment = TextOf(fmt::format("/proc/{}/environ", ancestor));
    const bool has_one = Holds(environment, one);
    const bool has_other = Holds(environment, other);
    if (!has_one || !has_other) return has_other;
    const std::optional<ProcessStat> stat = StatOf(ancestor);
    if (!stat) return false;
    ancestor = stat->parent;
  }
  return false;
}

}  // namespace lockstep::control
