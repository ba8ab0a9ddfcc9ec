// The processes above this one, and which of them is its launcher.
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::control {

struct Ancestor {
  pid_t pid = 0;
  std::string name;         // of its program, as the kernel cuts it
  std::string environment;  // as it began: "NAME=value", each with a NUL behind; "": not to be read
};

// Our parent first.
std::vector<Ancestor> Ancestors();

// Of two variables that this process has: `one` was set by the nearer ancestor, so it is of the
// launcher inside the other's. False where that cannot be seen.
bool IsInner(const char* one, const char* other);

// "NAME=value" of each of `names` that is set for this process.
std::vector<std::string> SettingsOf(std::initializer_list<const char*> names);

// Whether it has all of them, as who inherited them has.
bool Inherited(const Ancestor& ancestor, const std::vector<std::string>& settings);

// Who set `settings` for us: the first ancestor that has not all of them itself. What stands
// between (a shell, timeout, a debugger) has them. None: nobody knows who, because a process on the
// way is not for us to look into, or because all have them.
std::optional<pid_t> LauncherAmong(const std::vector<Ancestor>& ancestors,
                                   const std::vector<std::string>& settings);

}  // namespace lockstep::control
