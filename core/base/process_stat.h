// What the kernel says of this host, and of its processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Asked once.
const std::string& HostName();

// Of this process: "" where it is not set.
std::string VariableText(const char* name);

// The entries of a folder of /proc that are numbers: threads in "/proc/PID/task", descriptors in
// "/proc/PID/fd". None where it cannot be read.
std::vector<int> NumbersIn(const std::string& folder);

// Whether the process has a file mapped whose path holds `name`.
bool HasMapped(pid_t pid, const std::string& name);

// Processors on which this thread may run, ascending; none where the kernel does not say.
std::vector<int> AllowedCpus();

// Of this host, in /proc/meminfo; none: the kernel does not say.
std::optional<std::int64_t> MemAvailableBytes();

// Of /proc/PID/stat.
struct ProcessStat {
  char state = 0;  // its letter: R, S, D, T, t, Z …
  pid_t parent = 0;
  unsigned flags = 0;             // of the kernel: include/linux/sched.h
  std::uint64_t page_faults = 0;  // minor and major
  std::uint64_t started = 0;  // clock ticks since boot: with the pid it names a process for ever
  int processor = -1;         // where its main thread ran last

  bool ending() const { return (flags & 0x4) != 0; }  // PF_EXITING
};

// None: there is no such process, or it is not for us to see.
std::optional<ProcessStat> StatOf(pid_t pid);

// Of the file's text, "12 (na me) S 1 …".
std::optional<ProcessStat> ReadStat(const std::string& text);

}  // namespace lockstep
