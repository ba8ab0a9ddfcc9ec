#include "core/agent/worker_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/fd.h"

namespace lockstep::agent {

journal::WorkerLog ReadLogEnd(const std::string& path, std::size_t most) {
  journal::WorkerLog log;
  log.path = path;
  // The path is what a worker said: it may name a pipe or a device.
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return log;
  log.bytes = info.st_size;
  log.cut_bytes = std::max<std::int64_t>(log.bytes - static_cast<std::int64_t>(most), 0);
  log.text.resize(static_cast<std::size_t>(log.bytes - log.cut_bytes));
  const ssize_t got = pread(file.get(), log.text.data(), log.text.size(), log.cut_bytes);
  log.text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (log.cut_bytes > 0) {
    const std::size_t line = log.text.find('\n');
    const std::size_t drop = line == std::string::npos ? 0 : line + 1;
    log.text.erase(0, drop);
    log.cut_bytes += static_cast<std::int64_t>(drop);
  }
  // HDF5's strings end with a zero byte.
  std::replace(log.text.begin(), log.text.end(), '\0', ' ');
  return log;
}

}  // namespace lockstep::agent
