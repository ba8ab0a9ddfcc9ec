// Resources that a worker runs out of: soft limits are lowered to what it uses, and put back; its
// private /dev/shm is filled, and emptied.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "core/agent/injection.h"
#include "core/base/fd.h"
#include "core/base/process_stat.h"

namespace lockstep::agent {
namespace {

using Resource = __rlimit_resource;

// The soft limit only: it can be put back.
class Limit final : public Injection {
 public:
  ~Limit() override {
    rlimit now{};
    if (!set_ || prlimit(worker_, resource_, nullptr, &now) != 0) return;
    now.rlim_cur = before_.rlim_cur;
    prlimit(worker_, resource_, &now, nullptr);
  }

  Status Set(pid_t worker, Resource resource, rlim_t value, std::string what) {
    worker_ = worker, resource_ = resource, what_ = std::move(what);
    rlimit limit{};
    if (prlimit(worker, resource, nullptr, &before_) == 0) {
      limit = before_;
      limit.rlim_cur = std::min(value, before_.rlim_max);
      set_ = prlimit(worker, resource, &limit, nullptr) == 0;
    }
    if (set_) return OkStatus();
    return EnvironmentError("a limit of the worker cannot be set: {}; run as its owner",
                            std::strerror(errno));
  }
  std::string Describe() const override { return what_; }

 private:
  pid_t worker_ = 0;
  Resource resource_ = RLIMIT_AS;
  rlimit before_{};
  bool set_ = false;
  std::string what_;
};

Result<std::unique_ptr<Injection>> SetLimit(pid_t worker, Resource resource, rlim_t value,
                                            std::string what) {
  auto limit = std::make_unique<Limit>();
  LOCKSTEP_RETURN_IF_ERROR(limit->Set(worker, resource, value, std::move(what)));
  return limit;
}

Status Gone() { return EnvironmentError("the worker is gone: nothing of it can be limited"); }

class ShmFill final : public Injection {
 public:
  ShmFill(Fd file, std::int64_t left) : file_(std::move(file)), left_bytes_(left) {}
  std::string Describe() const override {
    return fmt::format("{} bytes are left in the private /dev/shm", left_bytes_);
  }

 private:
  Fd file_;  // without a name: it is gone when closed
  std::int64_t left_bytes_;
};

}  // namespace

Result<std::unique_ptr<Injection>> LimitMemory(pid_t worker, std::int64_t bytes) {
  std::ifstream file(fmt::format("/proc/{}/statm", worker));
  rlim_t pages = 0;
  if (!(file >> pages) || pages == 0) return Gone();
  const rlim_t used = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  return SetLimit(worker, RLIMIT_AS, used + static_cast<rlim_t>(bytes),
                  fmt::format("{} bytes more may be mapped (RLIMIT_AS)", bytes));
}

Result<std::unique_ptr<Injection>> LimitDescriptors(pid_t worker, int descriptors) {
  const std::vector<int> open = NumbersIn(fmt::format("/proc/{}/fd", worker));
  if (open.empty()) return Gone();
  const std::set<int> used(open.begin(), open.end());
  // The limit is on numbers, and the lowest free one is taken.
  int end = 0;
  for (int left = descriptors; left > 0 || used.contains(end); ++end) {
    if (!used.contains(end)) --left;
  }
  return SetLimit(worker, RLIMIT_NOFILE, static_cast<rlim_t>(end),
                  fmt::format("{} descriptors more may be opened (RLIMIT_NOFILE)", descriptors));
}

Result<std::unique_ptr<Injection>> LimitLockedMemory(pid_t worker, std::int64_t bytes) {
  return SetLimit(worker, RLIMIT_MEMLOCK, static_cast<rlim_t>(bytes),
                  fmt::format("{} bytes may be locked (RLIMIT_MEMLOCK)", bytes));
}

Result<std::unique_ptr<Injection>> FillPrivateShm(pid_t worker, std::int64_t bytes) {
  const std::string path = fmt::format("/proc/{}/root/dev/shm", worker);
  struct stat own {
  }, machines{};
  if (stat(path.c_str(), &own) != 0 || stat("/dev/shm", &machines) != 0) return Gone();
  if (own.st_dev == machines.st_dev) {
    return EnvironmentError(
        "the worker has no /dev/shm of its own, and the machine's is not filled; mount namespaces "
        "are needed: run as root, or allow unprivileged user namespaces");
  }
  // One after the other: the agents of all ranks that share it do this.
  const Fd turn(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  flock(turn.get(), LOCK_EX);
  struct statvfs space {};
  Fd file(open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid() || fstatvfs(file.get(), &space) != 0) {
    return EnvironmentError("its /dev/shm cannot be used: {}", std::strerror(errno));
  }
  const auto page = static_cast<std::int64_t>(space.f_frsize);
  const std::int64_t free_bytes = static_cast<std::int64_t>(space.f_bavail) * page;
  const std::int64_t fill = (free_bytes - bytes) / page * page;
  if (fill > 0) {
    const int error = posix_fallocate(file.get(), 0, fill);
    if (error != 0) {
      return EnvironmentError("its /dev/shm cannot be filled: {}; free memory",
                              std::strerror(error));
    }
  }
  return std::make_unique<ShmFill>(std::move(file), free_bytes - std::max<std::int64_t>(fill, 0));
}

}  // namespace lockstep::agent
