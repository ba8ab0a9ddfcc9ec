// A launcher does not have what it sets for its ranks. What stands between it and this process (a
// shell, a debugger) inherited that. A process's environment is read as it was when its program
// began: what it set for its own children later does not count.
#include "core/control/ancestors.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/file_text.h"
#include "core/base/process_stat.h"

namespace lockstep::control {
namespace {

// The only launcher that runs as another user than its ranks, who may not read its environment.
constexpr const char* kOfAnotherUser = "slurmstepd";

// `start` of an entry: "NAME=", or all of it with the NUL behind.
bool Holds(const std::string& environment, const std::string& start) {
  if (environment.starts_with(start)) return true;
  return environment.find('\0' + start) != std::string::npos;
}

}  // namespace

std::vector<Ancestor> Ancestors() {
  constexpr std::size_t kMost = 64;
  std::vector<Ancestor> ancestors;
  pid_t pid = getppid();
  while (pid > 0 && ancestors.size() < kMost) {
    ancestors.push_back({pid, FirstLine(fmt::format("/proc/{}/comm", pid), ""),
                         TextOf(fmt::format("/proc/{}/environ", pid))});
    const std::optional<ProcessStat> stat = StatOf(pid);
    pid = stat ? stat->parent : 0;
  }
  return ancestors;
}

bool IsInner(const char* one, const char* other) {
  for (const Ancestor& ancestor : Ancestors()) {
    const bool has_one = Holds(ancestor.environment, std::string(one) + "=");
    const bool has_other = Holds(ancestor.environment, std::string(other) + "=");
    if (!has_one || !has_other) return has_other;
  }
  return false;
}

std::vector<std::string> SettingsOf(std::initializer_list<const char*> names) {
  std::vector<std::string> settings;
  for (const char* const name : names) {
    const std::string value = VariableText(name);
    if (!value.empty()) settings.push_back(fmt::format("{}={}", name, value));
  }
  return settings;
}

bool Inherited(const Ancestor& ancestor, const std::vector<std::string>& settings) {
  return std::ranges::all_of(settings, [&](const std::string& setting) {
    return Holds(ancestor.environment, setting + '\0');
  });
}

std::optional<pid_t> LauncherAmong(const std::vector<Ancestor>& ancestors,
                                   const std::vector<std::string>& settings) {
  for (const Ancestor& ancestor : ancestors) {
    if (ancestor.environment.empty()) {
      if (ancestor.name == kOfAnotherUser) return ancestor.pid;
      return std::nullopt;
    }
    if (!Inherited(ancestor, settings)) return ancestor.pid;
  }
  return std::nullopt;
}

}  // namespace lockstep::control
