// Signals are blocked and read from a signalfd, so that a loop hears of them between two things.
#include "core/control/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::control {
namespace {

sigset_t BlockAgentSignals(const sigset_t& ours) {
  sigset_t inherited;
  LOCKSTEP_CHECK(pthread_sigmask(SIG_BLOCK, &ours, &inherited) == 0, std::strerror(errno));
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_IGN);
  // If it was inherited as ignored, the kernel would reap our children itself.
  signal(SIGCHLD, SIG_DFL);
  return inherited;
}

sigset_t AgentSignals() {
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGCONT}) sigaddset(&ours, number);
  return ours;
}

constexpr int kOfTerminal = 1;  // comes with a signal that a parent passes on

bool IsOfTerminal(const signalfd_siginfo& info) {
  if (info.ssi_signo != SIGINT) return false;
  const bool of_parent = static_cast<pid_t>(info.ssi_pid) == getppid();
  return info.ssi_code == SI_KERNEL ||
         (info.ssi_code == SI_QUEUE && of_parent && info.ssi_int == kOfTerminal);
}

const sigset_t& TheInherited() {
  static const sigset_t inherited = BlockAgentSignals(AgentSignals());
  return inherited;
}

}  // namespace

Signals::Signals() {
  TheInherited();
  const sigset_t ours = AgentSignals();
  fd_.Reset(signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
  LOCKSTEP_CHECK(fd_.valid(), std::strerror(errno));
}

Signals::Arrived Signals::Take() {
  Arrived arrived;
  signalfd_siginfo info;
  while (read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGCHLD) {
      arrived.child = true;
    } else if (info.ssi_signo == SIGCONT) {
      arrived.warned = arrived.warned || static_cast<pid_t>(info.ssi_pid) == getppid();
    } else if (arrived.end == 0 || arrived.of_terminal) {
      arrived.end = static_cast<int>(info.ssi_signo);
      arrived.of_terminal = IsOfTerminal(info);
    }
  }
  return arrived;
}

void Signals::PassOn(const Arrived& arrived, pid_t child) {
  if (arrived.end == 0) return;
  sigval origin{};
  origin.sival_int = arrived.of_terminal ? kOfTerminal : 0;
  sigqueue(child, arrived.end, origin);
}

Status Signals::TakeBeforeMeeting() {
  const int number = Take().end;
  if (number == 0) return OkStatus();
  return Terminated("ended by signal {} before the agents met", number);
}

const sigset_t& Signals::inherited_mask() { return TheInherited(); }

}  // namespace lockstep::control
