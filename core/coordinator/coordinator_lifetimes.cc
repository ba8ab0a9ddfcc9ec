// Workers begin and end.
#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "core/coordinator/coordinator_impl.h"

namespace lockstep::coordinator {
namespace {

constexpr double kStartSeconds = 60;
constexpr double kDismissSeconds = 2;

}  // namespace

void CoordinatorImpl::OrderStart(std::vector<control::WorkerSetup> setups) {
  setups.resize(members_.size());
  shm_ = LendPrivateShm(agents_, setups);
  for (int rank = size() - 1; rank >= 0; --rank) {
    Order(rank, control::StartOrder{lifetime_, setups[static_cast<std::size_t>(rank)]});
  }
}

Status CoordinatorImpl::StartWorkers(const std::vector<control::WorkerSetup>& setups) {
  if (options_.workers_own_mpi && lifetime_ >= 0) {
    return Unsupported(
        "the workers own the launcher's MPI identity, which serves one lifetime; "
        "start another launch for more");
  }
  if (lifetime_ >= 0) EndWorkers(Deadline::AfterSeconds(10));
  meeting_.Clear();
  ++lifetime_;
  for (Member& member : members_) {
    member.started.reset();
    member.worker = Worker::kNone;
    member.sent_signal = 0;
  }
  own_signal_by_.reset();
  OrderStart(setups);
  AwaitMembers(Deadline::AfterSeconds(kStartSeconds),
               [](const Member& m) { return m.started.has_value(); });
  for (int rank = 0; rank < size(); ++rank) LOCKSTEP_RETURN_IF_ERROR(Started(rank));
  return OkStatus();
}

Status CoordinatorImpl::Started(int rank) const {
  const Member& member = members_[static_cast<std::size_t>(rank)];
  if (member.lost || !member.started) {
    const bool told = member.loss == verdict::Loss::kTold;
    const bool ended = told || member.loss == verdict::Loss::kClosed;
    const bool reset = member.loss == verdict::Loss::kReset;
    return EnvironmentError(fmt::format(
        "the agent of rank {} on {} {}; {}", rank, agents_[static_cast<std::size_t>(rank)].host,
        told    ? "was told to end by a signal before its worker started"
        : ended ? "ended before its worker started"
        : reset ? "lost its connection to rank 0 before its worker started: it was reset"
                : "does not answer",
        ended ? "find who ended it (dmesg, the scheduler) and run again" : "check that host"));
  }
  if (member.started->ok()) return OkStatus();
  return Status(member.started->code(),
                fmt::format("rank {}: {}", rank, member.started->message()));
}

Status CoordinatorImpl::StartWorker(int rank) {
  if (options_.workers_own_mpi) {
    return Unsupported("a worker that owns the launcher's MPI identity cannot be replaced");
  }
  EndWorker(rank, Deadline::AfterSeconds(10));
  Member& member = members_[static_cast<std::size_t>(rank)];
  LOCKSTEP_CHECK(!member.start_order.empty(), "workers are started together first");
  member.started.reset();
  Order(rank, control::FrameType::kStartWorker, std::string(member.start_order));
  AwaitMembers(Deadline::AfterSeconds(kStartSeconds),
               [&](const Member& m) { return &m != &member || m.started.has_value(); });
  return Started(rank);
}

void CoordinatorImpl::EndWorker(int rank, Deadline deadline) {
  const std::uint64_t request = ++request_;
  Member& member = members_[static_cast<std::size_t>(rank)];
  Order(rank, control::EndOrder{request});
  AwaitMembers(deadline, [&](const Member& m) { return &m != &member || m.answered >= request; });
  if (!member.lost && member.answered < request) LoseSilent(rank);
  member.worker = Worker::kNone;
  std::erase_if(events_, [&](const Event& event) {
    return event.rank == rank && event.kind != EventKind::kLost &&
           event.kind != EventKind::kTerminate;
  });
}

void CoordinatorImpl::EndWorkers(Deadline deadline) {
  const std::uint64_t request = ++request_;
  OrderAll(control::EndOrder{request});
  AwaitMembers(deadline, [&](const Member& m) { return m.answered >= request; });
  for (int rank = 0; rank < size(); ++rank) {
    Member& member = members_[static_cast<std::size_t>(rank)];
    // An agent that cannot even end its worker is left; alone, it ends itself and its worker.
    if (!member.lost && member.answered < request) LoseSilent(rank);
    if (member.worker == Worker::kRunning) member.worker = Worker::kNone;
  }
}

bool CoordinatorImpl::AwaitExits(Deadline deadline) {
  const auto failed = [](const Member& m) {
    return m.lost || m.worker == Worker::kSignalled || m.worker == Worker::kNone;
  };
  const auto any_failed = [&] { return std::any_of(members_.begin(), members_.end(), failed); };
  AwaitMembers(deadline,
               [&](const Member& m) { return m.worker != Worker::kRunning || any_failed(); });
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& m) { return !m.lost && m.worker == Worker::kExited; });
}

void CoordinatorImpl::Dismiss() {
  agent_.End();
  for (int rank = 1; rank < size(); ++rank) Order(rank, control::FrameType::kDismiss);
  const Deadline deadline = Deadline::AfterSeconds(kDismissSeconds);
  for (Member& member : members_) {
    // Each answers kDismissed, then waits for our channel to close, which the end of this object
    // does: the launcher sees our exit first.
    while (member.channel && !member.lost && member.channel->open() && !deadline.Passed()) {
      pollfd item{member.channel->fd(), member.channel->poll_events(), 0};
      poll(&item, 1, deadline.RemainingMs());
      member.channel->Flush();
      member.channel->Fill();
      bool gone = false;
      while (const std::optional<control::Frame> frame = member.channel->Take()) {
        gone = gone || frame->is(control::FrameType::kDismissed);
      }
      if (gone) break;
    }
  }
}

}  // namespace lockstep::coordinator
