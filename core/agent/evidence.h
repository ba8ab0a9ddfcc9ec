// What the operating system says of a process, as evidence in a hang.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "core/base/deadline.h"
#include "core/journal/worker_log.h"

namespace lockstep::agent {

struct SystemEvidence {
  // One line: "asleep in clock_nanosleep; stack: clock_nanosleep@libc.so.6 < MPI_Allreduce@…".
  std::string text;
  // The main thread stayed, over the whole look of about 50 ms, in one and the same system call
  // that does not wait for peers (nanosleep, pause, poll of nothing …; futex, poll, epoll_wait,
  // recv, sched_yield are waits for peers).
  bool asleep = false;
  std::string call;  // /proc/<pid>/syscall, for the next look
};

// Looks at a running process twice, then takes its stack (the process is stopped for some
// milliseconds meanwhile). Returns soon after the deadline at the latest; what could not be had is
// named in the text. `earlier_call` is the `call` of the look before, if any: a sleep that was
// interrupted since then is still known for what it is.
SystemEvidence LookAt(pid_t pid, Deadline deadline, const std::string& earlier_call = "");

// Whether the process's main thread is ending (PF_EXITING in proc_pid_stat(5)): its connections
// close before anybody can wait for it, on a busy machine long before.
bool IsEnding(pid_t pid);

// The name of an x86-64 or arm64 system call that a process may block in, else "system call 17".
std::string SystemCallName(long number);

inline constexpr std::size_t kMostLogBytes = 16 << 10;

// The last `most` bytes of a regular file, from the beginning of a line on; empty text when there
// is no such file, or nothing in it. Never waits for a writer.
journal::WorkerLog ReadLogEnd(const std::string& path, std::size_t most = kMostLogBytes);

}  // namespace lockstep::agent
