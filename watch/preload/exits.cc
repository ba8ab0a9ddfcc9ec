// How a process ends itself: by exit() or return, which run what stands here, or by _exit(), which
// runs nothing and so is replaced.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace

// The exit code is known to handlers of exit() only.
void AwaitExit() {
  on_exit(
      [](int code, void*) {
        if (internal::header) internal::header->exit_code.store(code);
      },
      nullptr);
}

// A child of vfork() has its parent's memory.
extern "C" __attribute__((visibility("default"), noreturn)) void _exit(int code) {
  events::Header* const header = internal::header;
  if (header && header->pid == getpid() && header->exited.load() == 0) {
    header->exit_code.store(code & 0xff);
    NoteEnd(events::Exit::kQuit);
  }
  if (real_exit) real_exit(code);
  for (;;) syscall(SYS_exit_group, code);
}
extern "C" __attribute__((visibility("default"), noreturn)) void _Exit(int code)
    __attribute__((alias("_exit")));

}  // namespace lockstep::watch::preload
