// A helper process asks the driver again and again and writes samples into memory that it shares
// with the agent. If the driver blocks it for ever, it is left behind; the samples so far can be
// read.
#include "core/agent/gpu_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/now.h"
#include "core/base/process_stat.h"
#include "core/environment/nvml.h"

namespace lockstep::agent {

inline constexpr std::size_t kMostGpus = 64;
inline constexpr std::size_t kBusText = 32;

struct GpuWatch::Shared {
  std::atomic<std::int64_t> newest_ns;  // CLOCK_MONOTONIC of the start, then of the newest sample
  std::atomic<std::uint64_t> gpus;      // published after their buses
  std::atomic<std::uint64_t> written;   // samples, published after each
  char buses[kMostGpus][kBusText];
  journal::GpuSample samples[1];  // capacity of them
};

namespace {

constexpr double kEndSeconds = 0.5;
constexpr char kLibraryVariable[] = "LOCKSTEP_NVML_LIBRARY";

// Loading a driver's library costs; on machines without a GPU nothing is started for it.
bool HasDriver() {
  return !VariableText(kLibraryVariable).empty() || access("/dev/nvidiactl", F_OK) == 0 ||
         access("/dev/dxg", F_OK) == 0;
}

// Launchers bind ranks to processors: the helper goes to others, if it may.
void LeaveProcessors() {
  cpu_set_t bound;
  if (sched_getaffinity(0, sizeof bound, &bound) != 0) return;
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t others;
  CPU_ZERO(&others);
  for (int cpu = 0; cpu < std::min<long>(processors, CPU_SETSIZE); ++cpu) {
    if (!CPU_ISSET(cpu, &bound)) CPU_SET(cpu, &others);
  }
  if (CPU_COUNT(&others) > 0) sched_setaffinity(0, sizeof others, &others);
  setpriority(PRIO_PROCESS, 0, 10);
}

// Nothing of the launch may wait for a process that hangs in a driver.
void LetGo(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "lockstep-gpus");
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);  // signals to the launch are not for it
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) dup2(null, fd);
  close_range(3, ~0u, 0);
}

}  // namespace

// Ends with the process that forked it.
void GpuWatch::Serve(Shared& shared, const GpuWatchOptions& options, pid_t parent) {
  LetGo(parent);
  LeaveProcessors();
  const auto nvml = environment::Nvml::Open(VariableText(kLibraryVariable));
  if (!nvml.ok()) _exit(1);
  environment::Nvml& driver = **nvml;
  driver.ListenForXids();
  const std::vector<std::string> buses = driver.Buses();
  const std::size_t gpus = std::min(buses.size(), kMostGpus);
  for (std::size_t i = 0; i < gpus; ++i) {
    std::memcpy(shared.buses[i], buses[i].c_str(), std::min(buses[i].size(), kBusText - 1));
  }
  shared.gpus.store(gpus, std::memory_order_release);
  for (std::uint64_t written = 0; gpus > 0;) {
    for (std::size_t i = 0; i < gpus; ++i) {
      shared.samples[written % options.capacity] = driver.Sample(static_cast<int>(i));
      shared.written.store(++written, std::memory_order_release);
    }
    shared.newest_ns.store(MonotonicNs(), std::memory_order_release);
    driver.Rest(static_cast<int>(options.seconds * 1000));
  }
  _exit(0);
}

std::unique_ptr<GpuWatch> GpuWatch::Start(const GpuWatchOptions& options) {
  if (!HasDriver() || options.seconds <= 0) return nullptr;
  const std::size_t bytes = sizeof(Shared) + (options.capacity - 1) * sizeof(journal::GpuSample);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const shared = static_cast<Shared*>(memory);
  shared->newest_ns.store(MonotonicNs());
  const pid_t parent = getpid();
  const pid_t helper = fork();
  if (helper < 0) {
    munmap(memory, bytes);
    return nullptr;
  }
  if (helper > 0) {
    return std::unique_ptr<GpuWatch>(new GpuWatch(shared, bytes, options.capacity, helper));
  }
  Serve(*shared, options, parent);
}

GpuWatch::~GpuWatch() {
  kill(helper_, SIGKILL);
  const Deadline deadline = Deadline::AfterSeconds(kEndSeconds);
  while (waitpid(helper_, nullptr, WNOHANG) == 0 && !deadline.Passed()) {
    SleepNs(1'000'000);
  }
  munmap(shared_, bytes_);
}

journal::GpuSamples GpuWatch::Newest(std::size_t most) const {
  journal::GpuSamples known;
  const std::uint64_t gpus = shared_->gpus.load(std::memory_order_acquire);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(gpus, kMostGpus); ++i) {
    known.buses.emplace_back(shared_->buses[i]);
  }
  const std::uint64_t written = shared_->written.load(std::memory_order_acquire);
  // One round of all GPUs may be being overwritten while it is read.
  const std::uint64_t kept = std::min<std::uint64_t>(written, capacity_ - gpus);
  const std::uint64_t wanted = std::min(kept, most * std::max<std::uint64_t>(gpus, 1));
  known.missed = written - kept;
  for (std::uint64_t i = written - wanted; i < written; ++i) {
    known.samples.push_back(shared_->samples[i % capacity_]);
  }
  return known;
}

double GpuWatch::AgeSeconds() const {
  siginfo_t info{};
  const bool left =
      waitid(P_PID, static_cast<id_t>(helper_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == helper_;
  if (left) return 0;  // it found no driver
  return static_cast<double>(MonotonicNs() - shared_->newest_ns.load(std::memory_order_acquire)) *
         1e-9;
}

}  // namespace lockstep::agent
