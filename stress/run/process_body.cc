// What faults need of this process: its journal, its agent, its end.
#include "stress/run/process_body.h"

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/base/clock.h"
#include "stress/run/protocol.h"

namespace lockstep::stress::run {
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
  // Whoever applies it may wait for a processor; when the agent is lost, the link says so.
  return link_.Await(kAppliedMessage, Deadline::AfterSeconds(kForEverSeconds)).status();
}

void ProcessBody::Exit(int code) {
  std::fflush(stderr);
  _exit(code);
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
