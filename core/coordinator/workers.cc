// Lifetimes of workers. Each order to an agent is answered, or the agent is lost. What workers tell
// their agents on the way to meet is passed on here: agents exchange nothing among themselves.
#include "core/coordinator/workers.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::coordinator {
namespace {

constexpr double kStartSeconds = 60;

template <typename F>
int ValueIn(const std::string& payload) {
  return control::Decode<F>(payload).value_or(F{}).value;
}

// Makes a private /dev/shm for those of this host that ask for one, and tells their setups. None
// where nobody asks, or it cannot be had: then a fault that wants one says so.
std::unique_ptr<control::PrivateShm> LendPrivateShm(const std::vector<AgentInfo>& agents,
                                                    std::vector<WorkerSetup>& setups) {
  std::unique_ptr<control::PrivateShm> shm;
  for (std::size_t rank = 0; rank < setups.size(); ++rank) {
    if (!setups[rank].private_shm || agents[rank].boot_id != agents[0].boot_id) continue;
    if (shm == nullptr) {
      Result<std::unique_ptr<control::PrivateShm>> made = control::PrivateShm::Create();
      if (!made.ok()) return nullptr;
      shm = std::move(made).value();
    }
    setups[rank].environment.push_back(
        fmt::format("{}={}", control::kPrivateShmVariable, shm->holder()));
  }
  return shm;
}

}  // namespace

void Workers::Order(int rank) {
  At(rank).started.reset();
  members_.Order(rank, *At(rank).order);
}

Status Workers::StartAll(const std::vector<WorkerSetup>& setups) {
  if (own_mpi_ && lifetime_ >= 0) {
    return Unsupported(
        "the workers own the launcher's MPI identity, which serves one lifetime; "
        "start another launch for more");
  }
  if (lifetime_ >= 0) EndAll();
  meeting_.Clear();
  ++lifetime_;
  std::vector<WorkerSetup> all = setups;
  all.resize(workers_.size());
  shm_ = LendPrivateShm(members_.agents(), all);
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    workers_[rank] = {};
    workers_[rank].order = control::StartOrder{lifetime_, std::move(all[rank])};
  }
  for (int rank = members_.size() - 1; rank >= 0; --rank) Order(rank);
  members_.Await(Deadline::AfterSeconds(kStartSeconds),
                 [&](int rank) { return At(rank).started.has_value(); });
  for (const int rank : members_.ranks()) LOCKSTEP_RETURN_IF_ERROR(Started(rank));
  return OkStatus();
}

Status Workers::Started(int rank) {
  const std::optional<Status>& started = At(rank).started;
  if (members_.lost(rank) || !started) {
    const Loss loss = members_.loss(rank);
    const bool told = loss == Loss::kTold;
    const bool ended = told || loss == Loss::kClosed;
    const bool reset = loss == Loss::kReset;
    return EnvironmentError(
        "the agent of rank {} on {} {}; {}", rank,
        members_.agents()[static_cast<std::size_t>(rank)].host,
        told    ? "was told to end by a signal before its worker started"
        : ended ? "ended before its worker started"
        : reset ? "lost its connection to rank 0 before its worker started: it was reset"
                : "does not answer",
        ended ? "find who ended it (dmesg, the scheduler) and run again" : "check that host");
  }
  if (started->ok()) return OkStatus();
  return Status(started->code(), fmt::format("rank {}: {}", rank, started->message()));
}

Status Workers::Start(int rank) {
  if (own_mpi_) {
    return Unsupported("a worker that owns the launcher's MPI identity cannot be replaced");
  }
  End(rank);
  LOCKSTEP_CHECK(At(rank).order.has_value(), "workers are started together first");
  Order(rank);
  members_.Await(Deadline::AfterSeconds(kStartSeconds),
                 [&](int other) { return other != rank || At(rank).started.has_value(); });
  return Started(rank);
}

void Workers::Signal(int rank, int signal) {
  At(rank).sent_signal = signal;
  members_.Order(rank, control::SignalOrder{signal});
}

void Workers::End(int rank) {
  const std::uint64_t request = members_.NewRequest();
  members_.Order(rank, control::EndOrder{request});
  members_.AwaitAnswers(request, rank);
  if (!members_.Answered(rank, request)) members_.LoseSilent(rank);
  At(rank).state = State::kNone;
  events_.DropWorker(rank);
}

void Workers::EndAll() {
  const std::uint64_t request = members_.NewRequest();
  members_.OrderAll(control::EndOrder{request});
  members_.AwaitAnswers(request);
  for (const int rank : members_.ranks()) {
    // Told to end, there is no time for the rest; left alone, an agent ends itself and its worker.
    if (!members_.Answered(rank, request)) members_.LoseSilent(rank);
    if (At(rank).state == State::kRunning) At(rank).state = State::kNone;
  }
}

bool Workers::AwaitExits(Deadline deadline) {
  const auto failed = [&](int rank) {
    const State state = At(rank).state;
    return members_.lost(rank) || state == State::kSignalled || state == State::kNone;
  };
  members_.Await(deadline, [&](int rank) {
    return At(rank).state != State::kRunning || std::ranges::any_of(members_.ranks(), failed);
  });
  return std::ranges::all_of(members_.ranks(), [&](int rank) {
    return !members_.lost(rank) && At(rank).state == State::kExited;
  });
}

void Workers::OnStarted(Worker& worker, const std::string& payload) {
  const auto report = control::Decode<control::StartedReport>(payload);
  worker.started = report ? report->status : EnvironmentError("malformed reply from its agent");
  if (worker.started->ok()) worker.state = State::kRunning;
}

void Workers::OnMeetingPut(const std::string& payload) {
  const auto put = control::Decode<control::MeetingPut>(payload);
  if (!put) return;
  for (const MeetingPlace::Waiting& who : meeting_.Put(put->key, put->value)) {
    members_.Order(who.rank, control::MeetingValue{who.request, put->value});
  }
}

void Workers::OnMeetingGet(int rank, const std::string& payload) {
  const auto get = control::Decode<control::MeetingGet>(payload);
  if (!get) return;
  const std::string* const value = meeting_.Get(get->key, {rank, get->request});
  if (value) members_.Order(rank, control::MeetingValue{get->request, *value});
}

bool Workers::OnReport(int rank, FrameType type, const std::string& payload) {
  switch (type) {
    case FrameType::kStarted:
      OnStarted(At(rank), payload);
      return true;
    case FrameType::kEnded:
      if (const auto report = control::Decode<control::EndedReport>(payload)) {
        members_.NoteAnswer(rank, report->request);
      }
      return true;
    case FrameType::kExited:
      At(rank).state = State::kExited;
      events_.Push(EventKind::kExited, rank, ValueIn<control::ExitedReport>(payload));
      return true;
    case FrameType::kSignalled:
      At(rank).state = State::kSignalled;
      events_.Push(EventKind::kSignalled, rank, 0, ValueIn<control::SignalledReport>(payload));
      return true;
    case FrameType::kStopped:
      events_.Push(EventKind::kStopped, rank, 0, ValueIn<control::StoppedReport>(payload));
      return true;
    case FrameType::kMeetingPut:
      OnMeetingPut(payload);
      return true;
    case FrameType::kMeetingGet:
      OnMeetingGet(rank, payload);
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep::coordinator
