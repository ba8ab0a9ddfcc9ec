// An agent raises its own limit on open files as far as it may; a worker gets back what the
// launcher gave. A launch that needs more says so before anything starts.
#include "core/control/open_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "core/base/process_stat.h"

namespace lockstep::control {
namespace {

// What an agent opens besides the connections of its peers: its worker with the memory that they
// share, signals, watches, files, and connections of strangers until they are dropped.
constexpr rlim_t kOwnFiles = 128;

rlimit Limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

// As this process was started.
const rlimit& Inherited() {
  static const rlimit inherited = Limit();
  return inherited;
}

rlim_t OpenNow() { return NumbersIn("/proc/self/fd").size(); }

Status TooFew(const std::string& who, rlim_t needed) {
  const rlim_t limit = Limit().rlim_cur;
  return EnvironmentError(
      "{} needs {} open files, and may have {}: raise the hard limit on its host to {} (ulimit "
      "-Hn, LimitNOFILE= of the service that starts the launcher), or start fewer ranks",
      who, needed, limit, needed);
}

}  // namespace

void RaiseOpenFiles() {
  rlimit limit = Inherited();
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

rlim_t InheritedOpenFiles() { return Inherited().rlim_cur; }

void LimitOpenFiles(rlim_t soft) {
  rlimit limit = Limit();
  limit.rlim_cur = std::min(soft, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

Status CheckOpenFiles(int rank, int peers) {
  const rlim_t needed = OpenNow() + static_cast<rlim_t>(peers) + kOwnFiles;
  if (needed <= Limit().rlim_cur) return OkStatus();
  return TooFew(fmt::format("the agent of rank {}", rank), needed);
}

bool IsOutOfFiles(int error) { return error == EMFILE || error == ENFILE; }

Status OutOfFiles(int peers) {
  return TooFew("an agent that others join",
                Limit().rlim_cur + static_cast<rlim_t>(peers) + kOwnFiles);
}

}  // namespace lockstep::control
