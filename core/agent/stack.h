// The native stack of a process, read from outside by elfutils.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/deadline.h"

namespace lockstep::agent {

// "stack: clock_nanosleep@libc.so.6 < nanosleep@libc.so.6 < MPI_Allreduce@shim.so < main@bench;
// thread 2: …": innermost first, the main thread first, at most kMostFrames a thread; or
// "no stack: <why>". The process is stopped while its stack is read.
std::string StackText(pid_t pid, Deadline deadline);

inline constexpr int kMostFrames = 20;
inline constexpr int kMostThreads = 4;

}  // namespace lockstep::agent
