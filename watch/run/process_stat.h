// What /proc/PID/stat says of a process of this host.
#ifndef LOCKSTEP_WATCH_RUN_PROCESS_STAT_H_
#define LOCKSTEP_WATCH_RUN_PROCESS_STAT_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::watch::run {

struct ProcessStat {
  char state = 0;             // its letter: R, S, D, T, t, Z …
  std::uint64_t started = 0;  // clock ticks since boot: with the pid it names a process for ever
};

// None: there is no such process, or it is not for us to see.
std::optional<ProcessStat> StatOf(pid_t pid);

// Of the file's text, "12 (na me) S 1 …".
std::optional<ProcessStat> ReadStat(const std::string& text);

}  // namespace lockstep::watch::run

#endif  // LOCKSTEP_WATCH_RUN_PROCESS_STAT_H_
