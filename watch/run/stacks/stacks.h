// The native and Python stacks of a process of this host.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace lockstep::watch::run::stacks {

// "stack: poll@libc.so.6 < main@solver; thread MainThread: …; thread 2: …": the native main thread,
// then Python's threads, then other native ones. The process is stopped meanwhile.
std::string StacksOf(pid_t pid);

// Of both texts: Python's threads behind the native main thread.
std::string JoinStacks(std::string_view native, std::string_view python);

}  // namespace lockstep::watch::run::stacks
