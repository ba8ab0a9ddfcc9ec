// How a process ends itself: by exit() or return, which run what stands here, or by _exit(), which
// runs nothing and so is replaced. And how it ends others: a launcher has this library, too, and
// writes down whom it tells to end, before it does. Else a rank that it ended looks like one that
// died.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {
namespace {

using RealExit = void(int);
RealExit* real_exit = nullptr;

// Found ahead: a signal handler, or a child of vfork(), may call _exit(), but not look up symbols.
__attribute__((constructor)) void FindExit() {
  real_exit = reinterpret_cast<RealExit*>(dlsym(RTLD_NEXT, "_exit"));
}

__attribute__((destructor)) void NoteExit() {
  if (internal::header) NoteEnd(events::Exit::kExit);
}

using RealKill = int(pid_t, int);
RealKill* real_kill = nullptr;
char endings[512] = "";  // a file's path; "": nobody watches

// Found ahead, as above. What comes before is not written down.
__attribute__((constructor)) void FindKill() {
  real_kill = reinterpret_cast<RealKill*>(dlsym(RTLD_NEXT, "kill"));
  const char* const folder = std::getenv(events::kFolderVariable);
  if (folder) std::snprintf(endings, sizeof endings, "%s/%s", folder, events::kEndingsFile);
}

int Kill(pid_t target, int signal) {
  return real_kill ? real_kill(target, signal)
                   : static_cast<int>(syscall(SYS_kill, target, signal));
}

bool Ends(int signal) {
  return signal == SIGTERM || signal == SIGKILL || signal == SIGINT || signal == SIGHUP ||
         signal == SIGQUIT || signal == SIGABRT;
}

// A child that has ended, and was not waited for yet, or a process that is not there.
bool HasEnded(pid_t process) {
  siginfo_t child = {};
  const int error = waitid(P_PID, static_cast<id_t>(process), &child, WEXITED | WNOHANG | WNOWAIT);
  return error == 0 ? child.si_pid == process : Kill(process, 0) != 0 && errno == ESRCH;
}

// Ranks that end themselves or others are the program's own business. Also in handlers of signals,
// and in children of vfork(): by system calls alone.
void NoteEnding(pid_t target, int signal) {
  const bool own = target == getpid() || internal::header != nullptr;
  if (own || !Ends(signal) || endings[0] == 0) return;
  const int before = errno;
  events::Ending ending = {events::NowTicks(), target == 0 ? -getpgrp() : target, 0};
  if (ending.target != -1) {
    const pid_t first = static_cast<pid_t>(ending.target < 0 ? -ending.target : ending.target);
    ending.ended_before = HasEnded(first) ? first : 0;
  }
  const int file = open(endings, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file >= 0) {
    if (write(file, &ending, sizeof ending) < 0) errno = before;
    close(file);
  }
  errno = before;
}

}  // namespace

// The exit code is known to handlers of exit() only.
void AwaitExit() {
  on_exit(
      [](int code, void*) {
        if (!internal::header) return;
        internal::header->exit_code.store(code);
        internal::header->exited_ticks.store(events::NowTicks());
      },
      nullptr);
}

// A child of vfork() has its parent's memory.
extern "C" __attribute__((visibility("default"), noreturn)) void _exit(int code) {
  events::Header* const header = internal::header;
  if (header && header->pid == getpid() && header->exited.load() == 0) {
    header->exit_code.store(code & 0xff);
    header->exited_ticks.store(events::NowTicks());
    NoteEnd(events::Exit::kQuit);
  }
  if (real_exit) real_exit(code);
  for (;;) syscall(SYS_exit_group, code);
}
extern "C" __attribute__((visibility("default"), noreturn)) void _Exit(int code)
    __attribute__((alias("_exit")));

extern "C" __attribute__((visibility("default"))) int kill(pid_t target, int signal) {
  NoteEnding(target, signal);
  return Kill(target, signal);
}

extern "C" __attribute__((visibility("default"))) int killpg(pid_t group, int signal) {
  if (group >= 0) return kill(-group, signal);
  errno = EINVAL;
  return -1;
}

}  // namespace lockstep::watch::preload
