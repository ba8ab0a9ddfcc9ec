// Processor time is taken from a worker by helper processes of ours. They die with the agent, with
// the worker's process group, and after a bound of processor time.
#include <fmt/core.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <vector>

#include "core/agent/injection.h"
#include "core/base/fd.h"
#include "core/base/now.h"
#include "core/base/process_stat.h"

namespace lockstep::agent {
namespace {

// A second bound on what runs for us, if neither the end of the worker nor ours ended it.
constexpr rlim_t kMostSeconds = 3600;
constexpr long kPeriodNs = 20'000'000;

// A child of this process that runs `work`, which never returns. It dies with us, and belongs to
// the worker's process group, which is killed with the worker.
template <typename Work>
Result<pid_t> StartHelper(pid_t worker, const char* name, Work work) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    return EnvironmentError("cannot fork: {}; raise the limit on processes", std::strerror(errno));
  }
  // Both of us, so that neither goes on before.
  if (pid > 0) {
    setpgid(pid, worker);
    return pid;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, name);
  const rlimit bound{kMostSeconds, kMostSeconds};
  setrlimit(RLIMIT_CPU, &bound);
  if (getppid() == parent && setpgid(0, worker) == 0) work();
  _exit(1);
}

void EndHelper(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

std::vector<pid_t> ThreadsOf(pid_t pid) { return NumbersIn(fmt::format("/proc/{}/task", pid)); }

class Hog final : public Injection {
 public:
  ~Hog() override {
    for (const pid_t pid : hogs_) EndHelper(pid);
    // Threads made since inherited the binding: they get what the main thread had.
    const auto usual = masks_.find(worker_);
    for (const pid_t thread : ThreadsOf(worker_)) {
      const auto own = masks_.find(thread);
      if (own == masks_.end() && usual == masks_.end()) continue;
      const cpu_set_t& mask = own == masks_.end() ? usual->second : own->second;
      sched_setaffinity(thread, sizeof mask, &mask);
    }
  }

  Status Start(pid_t worker, int processes) {
    worker_ = worker;
    processor_ = StatOf(worker).value_or(ProcessStat()).processor;
    if (processor_ < 0 || processor_ >= CPU_SETSIZE) {
      return EnvironmentError("the worker's processor is not known; is it still there?");
    }
    CPU_ZERO(&one_);
    CPU_SET(static_cast<std::size_t>(processor_), &one_);
    for (const pid_t thread : ThreadsOf(worker)) {
      cpu_set_t mask;
      if (sched_getaffinity(thread, sizeof mask, &mask) != 0) continue;
      if (sched_setaffinity(thread, sizeof one_, &one_) != 0) continue;
      masks_[thread] = mask;
    }
    if (masks_.empty()) {
      return EnvironmentError("the worker cannot be bound to processor {}: {}", processor_,
                              std::strerror(errno));
    }
    for (int i = 0; i < std::clamp(processes, 1, kMostHogs); ++i) {
      LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, StartHelper(worker, "lockstep-hog", [&] {
                                  close_range(3, ~0u, 0);
                                  if (sched_setaffinity(0, sizeof one_, &one_) != 0) return;
                                  for (volatile unsigned spins = 0;;) spins = spins + 1;
                                }));
      hogs_.push_back(pid);
    }
    return OkStatus();
  }

  std::string Describe() const override {
    return fmt::format("{} processes spin on processor {}, to which the worker is bound",
                       hogs_.size(), processor_);
  }

 private:
  pid_t worker_ = 0;
  int processor_ = -1;
  cpu_set_t one_;
  std::map<pid_t, cpu_set_t> masks_;
  std::vector<pid_t> hogs_;
};

class Throttle final : public Injection {
 public:
  ~Throttle() override {
    if (plugin_ > 0) EndHelper(plugin_);
    Tell(SIGCONT);
  }

  // A number of a process can be used again, its descriptor cannot.
  Status Start(pid_t worker, double share) {
    share_ = share;
    worker_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, worker, 0)));
    if (!worker_.valid() || !Tell(0)) {
      return EnvironmentError("the worker is gone: there is nothing to throttle");
    }
    const long run_ns = std::clamp(static_cast<long>(share * kPeriodNs), 100'000L, kPeriodNs);
    LOCKSTEP_ASSIGN_OR_RETURN(plugin_, StartHelper(worker, "lockstep-slow", [this, run_ns] {
                                const auto own = static_cast<unsigned>(worker_.get());
                                if (own > 3) close_range(3, own - 1, 0);
                                close_range(own + 1, ~0u, 0);
                                while (Tell(SIGSTOP)) {
                                  SleepNs(kPeriodNs - run_ns);
                                  if (!Tell(SIGCONT)) return;
                                  SleepNs(run_ns);
                                }
                              }));
    return OkStatus();
  }

  std::string Describe() const override {
    return fmt::format("stopped and continued every {} ms, to run {:.3g} % of the time",
                       kPeriodNs / 1'000'000, share_ * 100);
  }

 private:
  bool Tell(int signal) const {
    return syscall(SYS_pidfd_send_signal, worker_.get(), signal, nullptr, 0) == 0;
  }

  double share_ = 1;
  Fd worker_;
  pid_t plugin_ = 0;
};

}  // namespace

Result<std::unique_ptr<Injection>> HogProcessor(pid_t worker, int processes) {
  auto hog = std::make_unique<Hog>();
  LOCKSTEP_RETURN_IF_ERROR(hog->Start(worker, processes));
  return hog;
}

Result<std::unique_ptr<Injection>> ThrottleProcessor(pid_t worker, double share) {
  auto throttle = std::make_unique<Throttle>();
  LOCKSTEP_RETURN_IF_ERROR(throttle->Start(worker, share));
  return throttle;
}

}  // namespace lockstep::agent
