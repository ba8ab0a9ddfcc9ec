// Does to this process what a fault says: ends it, lets it raise, run out of memory, or wait.
#include "stress/run/process_body.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "stress/faults/device_memory.h"
#include "stress/run/protocol.h"

namespace lockstep::stress::run {
namespace {

constexpr double kApplySeconds = 30;
constexpr double kSleepSeconds = 0.1;
constexpr std::size_t kPieceBytes = 8 << 20;
constexpr rlim_t kRoomBytes = 256 << 20;

// A crash that is wanted leaves no core file.
void ForbidCoreFiles() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// Takes memory until the process may have no more, as a model that is too large does.
Status RunOutOfMemory() {
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur =
      static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kRoomBytes;
  setrlimit(RLIMIT_AS, &limit);
  std::vector<std::unique_ptr<char[]>> taken;
  try {
    for (std::size_t i = 0; i < 2 * kRoomBytes / kPieceBytes; ++i) {
      taken.push_back(std::make_unique<char[]>(kPieceBytes));
    }
  } catch (const std::bad_alloc&) {
    taken.clear();
    return SystemFailed("out of memory: an allocation of 8 MiB was refused (injected)");
  }
  return EnvironmentError("no limit on memory could be set, so the process did not run out of it");
}

}  // namespace

ProcessBody::ProcessBody(worker::WorkerLink& link) : link_(link), began_ns_(MonotonicNs()) {}

void ProcessBody::Journal(std::size_t fault_index) {
  journal::JournalEvent event;
  event.kind = journal::EventKind::kFault;
  event.value = static_cast<std::int64_t>(fault_index);
  if (recorded_ != nullptr) {
    recorded_->Note(event);
  } else {
    link_.journal().Append(event);
  }
  std::lock_guard lock(mutex_);
  const Status told = link_.Send({kFiredMessage, fmt::format("{}", fault_index)});
  if (!told.ok()) fmt::print(stderr, "lockstep worker: {}\n", told.message());
}

Status ProcessBody::ApplyOutside(std::size_t) {
  std::lock_guard lock(mutex_);
  return link_.Await(kAppliedMessage, Deadline::AfterSeconds(kApplySeconds)).status();
}

void ProcessBody::Exit(int code) {
  std::fflush(stderr);
  _exit(code);
}

Status ProcessBody::Inject(const faults::PlannedFault& fault) {
  switch (fault.kind) {
    case faults::FaultKind::kExit:
      Exit(0);
      break;
    case faults::FaultKind::kThrow:
      raised_ = true;
      return SystemFailed("the program raised an exception (injected)");
    case faults::FaultKind::kSegfault: {
      ForbidCoreFiles();
      // No page of a process; a null pointer would end it by a sanitizer, not by a signal.
      volatile int* nowhere = reinterpret_cast<int*>(alignof(int));
      *nowhere = 1;
      break;
    }
    case faults::FaultKind::kAbort:
      ForbidCoreFiles();
      std::abort();
    case faults::FaultKind::kOutOfMemory:
      raised_ = true;
      return RunOutOfMemory();
    case faults::FaultKind::kDeviceMemoryFull: {
      LOCKSTEP_CHECK(device_ != nullptr, "the platform is open before the first fault");
      LOCKSTEP_ASSIGN_OR_RETURN(taken_, faults::FillDevice(*device_));
      break;
    }
    case faults::FaultKind::kHungAbort:
      abort_hangs_ = true;
      break;
    case faults::FaultKind::kWrongMembership:
      wrong_membership_ = true;
      break;
    case faults::FaultKind::kHang:
      return Sleep(
          static_cast<std::int64_t>(fault.duration_seconds.value_or(kForEverSeconds) * 1e9));
    case faults::FaultKind::kSleep:
      return Sleep(static_cast<std::int64_t>(fault.duration_seconds.value_or(kSleepSeconds) * 1e9));
    default:
      LOCKSTEP_CHECK(false, "a fault of the program itself");
  }
  return OkStatus();
}

double ProcessBody::SecondsSinceStart() {
  return static_cast<double>(MonotonicNs() - began_ns_) * 1e-9;
}

Status ProcessBody::Sleep(std::int64_t ns) {
  const std::int64_t until = MonotonicNs() + ns;
  const timespec at{until / 1'000'000'000, until % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
  return OkStatus();
}

}  // namespace lockstep::stress::run
