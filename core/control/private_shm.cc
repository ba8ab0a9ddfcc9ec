// A holder process enters a mount namespace of its own and mounts a small /dev/shm there; workers
// enter the namespace through it. It ends with its agent, and the mount with it.
#include "core/control/private_shm.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "core/base/fd.h"

namespace lockstep::control {
namespace {

bool WriteFile(const char* path, const std::string& text) {
  const Fd file(open(path, O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Without privileges a user namespace gives the right to mount.
bool LeaveNamespaces() {
  if (unshare(CLONE_NEWNS) == 0) return true;
  const std::string user = fmt::format("{0} {0} 1", geteuid());
  const std::string group = fmt::format("{0} {0} 1", getegid());
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && WriteFile("/proc/self/uid_map", user) &&
         WriteFile("/proc/self/setgroups", "deny") && WriteFile("/proc/self/gid_map", group);
}

bool MountSmallShm() {
  const std::string options = fmt::format("size={},mode=1777", kPrivateShmBytes);
  return LeaveNamespaces() && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
}

[[noreturn]] void Hold(pid_t parent, int ready_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "lockstep-shm");
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);
  const char answer = MountSmallShm() ? 'y' : 'n';
  const bool told = write(ready_fd, &answer, 1) == 1;
  // The sockets of the process that forked must not outlive it here.
  close_range(3, ~0u, 0);
  while (told && answer == 'y') pause();
  _exit(1);
}

std::string LinkOf(const std::string& path) {
  char text[64];
  const ssize_t size = readlink(path.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "";
}

}  // namespace

Result<std::unique_ptr<PrivateShm>> PrivateShm::Create() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return EnvironmentError("no pipe; raise the limit on open files");
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return EnvironmentError("cannot fork; raise the limit on processes");
  if (pid == 0) Hold(parent, theirs.get());
  theirs = Fd();
  auto made = std::unique_ptr<PrivateShm>(new PrivateShm(pid));
  char answer = 'n';
  if (read(ours.get(), &answer, 1) == 1 && answer == 'y') return made;
  return EnvironmentError(
      "mount namespaces are not permitted here; run as root, or allow unprivileged user "
      "namespaces");
}

PrivateShm::~PrivateShm() {
  kill(holder_, SIGKILL);
  waitpid(holder_, nullptr, 0);
}

void EnterPrivateShm() {
  const char* const holder = std::getenv(kPrivateShmVariable);
  if (holder == nullptr) return;
  const std::string root = fmt::format("/proc/{}/ns/", holder);
  const Fd mounts(open((root + "mnt").c_str(), O_RDONLY | O_CLOEXEC));
  if (LinkOf(root + "user") != LinkOf("/proc/self/ns/user")) {
    const Fd user(open((root + "user").c_str(), O_RDONLY | O_CLOEXEC));
    if (!user.valid() || setns(user.get(), CLONE_NEWUSER) != 0) return;
  }
  char* const here = get_current_dir_name();
  // It takes the worker to the root directory of the namespace.
  if (mounts.valid() && setns(mounts.get(), CLONE_NEWNS) == 0 && here != nullptr) {
    if (chdir(here) != 0) std::perror(here);
  }
  std::free(here);
}

}  // namespace lockstep::control
