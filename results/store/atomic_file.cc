// Writes beside the name, syncs and renames, so that a reader never sees half a file. Places that
// cannot be written are found out before a run, by trying. A file size limit is an error here,
// because its signal is blocked.
#include "results/store/atomic_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/base/fd.h"
#include "results/store/store.h"

namespace lockstep::results::store {
namespace {

namespace fs = std::filesystem;

// While one lives, writing beyond RLIMIT_FSIZE is EFBIG and no SIGXFSZ, which would end the
// process. The signal is sent to the writing thread, so blocking it here is enough.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;
  ~NoFileSizeSignal() {
    const timespec now = {};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_;
  sigset_t before_;
  bool was_pending_ = false;
};

std::string_view RemedyFor(int error) {
  if (error == EFBIG) return "raise the file size limit (ulimit -f), or measure fewer iterations";
  if (error == ENAMETOOLONG) return "choose a shorter name with --output";
  return error == ENOSPC || error == EDQUOT
             ? "free space there, or choose another place with --output"
             : "choose another place with --output";
}

Status CannotWrite(const std::string& path, int error) {
  return EnvironmentError("{}: cannot be written ({}); {}", path, std::strerror(error),
                          RemedyFor(error));
}

fs::path DirectoryOf(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Cut where the longest name that file systems take would be passed.
fs::path TemporaryBeside(const fs::path& path) {
  const std::string name = path.filename().string().substr(0, 200);
  return DirectoryOf(path) / fmt::format(".{}.tmp-{}", name, getpid());
}

// Removes the temporary file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(const fs::path& path) : path_(path) {
    unlink(path_.c_str());  // of an earlier process with this id
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    const int error = errno;
    if (!renamed_) unlink(path_.c_str());
    errno = error;
  }
  Fd Create() { return Fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)); }
  bool RenameTo(const fs::path& path, bool replaces) {
    renamed_ = replaces ? rename(path_.c_str(), path.c_str()) == 0 : RenameToNew(path_, path);
    return renamed_;
  }

 private:
  fs::path path_;
  bool renamed_ = false;
};

// False with errno on an error.
bool WriteFully(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
  return true;
}

// Some file systems have no fsync of directories (EINVAL); there the rename has to do.
bool SyncDirectory(const fs::path& directory) {
  const Fd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.valid() && (fsync(fd.get()) == 0 || errno == EINVAL || errno == ENOTSUP);
}

// What no run can be written to, whatever the machine: asked for by mistake.
Status CheckIsFileName(const std::string& path) {
  const std::string_view remedy = "name a file that ends in .h5";
  if (path.empty()) return InvalidInput("--output: the path is empty; {}", remedy);
  if (path.find('\0') != std::string::npos) {
    return InvalidInput("--output: the path has a NUL byte; {}", remedy);
  }
  struct stat facts {};
  if (path.back() == '/' || (stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode))) {
    return InvalidInput("{}: is a directory; {}", path, remedy);
  }
  if (stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
    return InvalidInput("{}: is a device, pipe or socket; {}", path, remedy);
  }
  return OkStatus();
}

// What a link leads to is written, there already or not, and the link stays: /dev/stdout is one.
std::string BehindLinks(const std::string& path) {
  std::error_code error;
  const fs::path there = fs::canonical(path, error);
  if (!error) return there.string();
  constexpr int kMostLinks = 40;  // the kernel's bound
  fs::path behind = path;
  for (int links = 0; links < kMostLinks && fs::is_symlink(behind, error); ++links) {
    behind = DirectoryOf(behind) / fs::read_symlink(behind, error);
  }
  return behind.string();
}

}  // namespace

Status CheckWritable(const std::string& name) {
  LOCKSTEP_RETURN_IF_ERROR(CheckIsFileName(name));
  const std::string path = BehindLinks(name);
  fs::path directory = DirectoryOf(path);
  std::error_code error;
  while (!fs::exists(directory, error)) {
    if (error) return CannotWrite(path, error.value());
    directory = DirectoryOf(directory.lexically_normal());
  }
  if (!fs::is_directory(directory, error)) return CannotWrite(path, ENOTDIR);
  // Trying says more than permissions do: read-only or full file systems, quotas, limits.
  const NoFileSizeSignal no_signal;
  Temporary probe(TemporaryBeside(directory / fs::path(path).filename()));
  Fd fd = probe.Create();
  static constexpr std::array<std::byte, 65536> kProbe{};
  if (!fd.valid() || !WriteFully(fd.get(), kProbe) || !fd.Close()) return CannotWrite(path, errno);
  return OkStatus();
}

Status WriteAtomically(const std::string& name,
                       const std::vector<std::span<const std::byte>>& parts, WriteRules rules) {
  LOCKSTEP_RETURN_IF_ERROR(CheckIsFileName(name));
  const std::string path = BehindLinks(name);
  const fs::path directory = DirectoryOf(path);
  std::error_code made;
  fs::create_directories(directory, made);
  if (made) return CannotWrite(path, made.value());
  const NoFileSizeSignal no_signal;
  Temporary temporary(TemporaryBeside(path));
  Fd fd = temporary.Create();
  if (!fd.valid()) return CannotWrite(path, errno);
  for (const auto& part : parts) {
    if (!WriteFully(fd.get(), part)) return CannotWrite(path, errno);
  }
  if (rules.synced && fsync(fd.get()) != 0) return CannotWrite(path, errno);
  if (!fd.Close()) return CannotWrite(path, errno);
  if (!temporary.RenameTo(path, rules.replaces)) return CannotWrite(path, errno);
  if (rules.synced && !SyncDirectory(directory)) return CannotWrite(path, errno);
  return OkStatus();
}

// File systems without such a rename (NFS) have links, which do the same.
bool RenameToNew(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  return link(from.c_str(), to.c_str()) == 0 && unlink(from.c_str()) == 0;
}

}  // namespace lockstep::results::store
