// Every call to NCCL goes through here: non-blocking, polled until it settles, one at a time. The
// first error stays and is repeated to all later callers, because NCCL calls errors fatal. Calls
// that may block go through bounded_call.cc. An abort waits a second for a caller that is inside,
// then does not wait.
#include "core/comm/nccl/connection.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "core/base/print_stderr.h"
#include "core/comm/nccl/debug_log.h"
#include "core/comm/nccl/pause.h"
#include "fmt/format.h"

namespace lockstep::comm::nccl {
namespace {

constexpr double kAbortPatienceSeconds = 1;  // for a call of another thread

bool WentWell(Code code) { return code == kSuccess || code == kInProgress; }

// What the library says of a failed call. `comm` may be null.
Status Explain(const Library& library, std::string_view call, Code code, Comm comm) {
  std::string text = fmt::format("nccl: {}", library.Describe(call, code));
  const char* last = library.api().GetLastError(comm);
  if (last != nullptr && *last != '\0') text += fmt::format("; {}", WithoutControls(last));
  const std::string log = DebugLogEnd();
  if (!log.empty()) text += fmt::format("; {}", log);
  return SystemFailed(text);
}

Status NeverReturned(std::string_view call, std::string_view consequence) {
  const std::string log = DebugLogEnd();
  return DeadlineExceeded("nccl: {} did not return before the deadline; {}{}{}", call, consequence,
                          log.empty() ? "" : "; ", log);
}

Status Aborted() { return SystemFailed("nccl: the communicator was aborted"); }

// What a call that makes a communicator writes to: owned by the thread that calls, too, because it
// may stay behind.
struct Birth {
  Comm comm = nullptr;
  Config config;
  Comm Read() { return std::atomic_ref<Comm>(comm).load(); }
};

}  // namespace

Connection::Connection(Terms terms, Comm comm, int rank, int size)
    : terms_(std::move(terms)),
      comm_(comm),
      rank_(rank),
      size_(size),
      watched_(
          {terms_.operation_seconds, terms_.abort_seconds}, [this] { static_cast<void>(Abort()); },
          [this] {
            if (!terms_.last_resort) return;
            terms_.last_resort(fmt::format(
                "nccl: {} did not return within {} s, nor {} s after ncclCommAbort; this "
                "process ends itself, because nothing else can end the call",
                inside_.load(), terms_.operation_seconds, terms_.abort_seconds));
          }) {}

Connection::~Connection() {
  const Status status = Close();
  if (!status.ok()) PrintStderr("{}\n", status.message());
}

Result<std::shared_ptr<Connection>> Connection::Connect(const Terms& terms, const UniqueId& id,
                                                        int rank, int size, Deadline deadline) {
  constexpr char kName[] = "ncclCommInitRankConfig";
  const auto birth = std::make_shared<Birth>();
  birth->config = terms.library->NewConfig();
  LOCKSTEP_RETURN_IF_ERROR(WatchedCalls::StartWatching());
  const auto init = [birth, library = terms.library, id, rank, size] {
    return library->api().CommInitRankConfig(&birth->comm, size, id, rank, &birth->config);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const auto code, CallBounded(init, deadline, terms.enter_thread));
  if (!code) return NeverReturned(kName, "its thread stays behind");
  if (!WentWell(*code)) return Explain(*terms.library, kName, *code, nullptr);
  std::shared_ptr<Connection> connection(new Connection(terms, birth->Read(), rank, size));
  const Status settled = connection->Settle(kName, connection->comm_, deadline);
  if (settled.ok()) return connection;
  const Status aborted = connection->Abort();
  return aborted.ok() ? settled : aborted;
}

Status Connection::failure() const {
  std::lock_guard lock(failure_mutex_);
  return failure_;
}

Status Connection::FailWith(Status status) {
  std::lock_guard lock(failure_mutex_);
  if (failure_.ok()) failure_ = std::move(status);
  failed_.store(true);
  return failure_;
}

// Says why it was aborted in place of that it was.
Status Connection::FailLate(std::string_view call) {
  std::lock_guard lock(failure_mutex_);
  failure_ = SystemFailed("nccl: {} did not return within {} s; the communicator was aborted", call,
                          terms_.operation_seconds);
  failed_.store(true);
  return failure_;
}

Status Connection::Fail(std::string_view call, Code code) {
  return FailWith(Explain(library(), call, code, comm_));
}

Status Connection::AskState(Comm comm, Code& state) {
  constexpr char kName[] = "ncclCommGetAsyncError";
  inside_.store(kName);
  watched_.Enter();
  const Code asked = library().api().CommGetAsyncError(comm, &state);
  if (watched_.Leave()) return FailLate(kName);
  return asked == kSuccess ? OkStatus() : Fail(kName, asked);
}

Status Connection::Settle(const char* name, Comm comm, Deadline deadline) {
  Pause pause;
  for (;;) {
    if (aborted_.load() || (terms_.given_up && terms_.given_up())) return FailWith(Aborted());
    Code state = kSuccess;
    LOCKSTEP_RETURN_IF_ERROR(AskState(comm, state));
    if (state == kSuccess) return OkStatus();
    if (state != kInProgress) return Fail(name, state);
    if (deadline.Passed()) {
      return FailWith(
          DeadlineExceeded("nccl: {} was still in progress at the deadline; a rank did not come, "
                           "or its network does not answer",
                           name));
    }
    pause();
  }
}

Status Connection::Make(const char* name, const Call& call) {
  std::lock_guard lock(calling_);
  LOCKSTEP_RETURN_IF_ERROR(Health());
  inside_.store(name);
  watched_.Enter();
  const Code code = call(comm_);
  if (watched_.Leave()) return FailLate(name);
  if (code == kSuccess) return OkStatus();
  if (code != kInProgress) return Fail(name, code);
  return Settle(name, comm_, Deadline::AfterSeconds(terms_.operation_seconds));
}

Status Connection::Health() const {
  if (failed_.load()) return failure();
  if (aborted_.load()) return Aborted();
  if (!revoked_.load()) return OkStatus();
  return SystemFailed("nccl: the communicator was revoked: what was in flight did not complete");
}

Status Connection::Poll() {
  std::lock_guard lock(calling_);
  LOCKSTEP_RETURN_IF_ERROR(Health());
  Code state = kSuccess;
  LOCKSTEP_RETURN_IF_ERROR(AskState(comm_, state));
  return WentWell(state) ? OkStatus() : Fail("asynchronous error", state);
}

Status Connection::MakeBounded(const char* name, std::function<Code()> call, Deadline deadline) {
  const auto made = CallBounded(std::move(call), deadline, terms_.enter_thread);
  if (!made.ok()) return FailWith(made.status());
  const std::optional<Code>& code = *made;
  if (!code) return FailWith(NeverReturned(name, "its thread stays behind"));
  return WentWell(*code) ? OkStatus() : Fail(name, *code);
}

Result<std::shared_ptr<Connection>> Connection::Adopt(const char* name, Comm child,
                                                      Deadline deadline) {
  LOCKSTEP_RETURN_IF_ERROR(Settle(name, child, deadline));
  int rank = 0;
  int size = 0;
  Code code = library().api().CommUserRank(child, &rank);
  if (code == kSuccess) code = library().api().CommCount(child, &size);
  if (code != kSuccess) return Fail(name, code);
  return std::shared_ptr<Connection>(new Connection(terms_, child, rank, size));
}

Result<std::shared_ptr<Connection>> Connection::Child(const char* name, bool parent_settles,
                                                      MakeChild make_child, Deadline deadline) {
  std::lock_guard lock(calling_);
  if (aborted_.load()) return Aborted();
  const auto birth = std::make_shared<Birth>();
  birth->config = library().NewConfig();
  LOCKSTEP_RETURN_IF_ERROR(MakeBounded(
      name,
      [birth, comm = comm_, make = std::move(make_child)] {
        return make(comm, &birth->comm, &birth->config);
      },
      deadline));
  // The library may fill in the child's handle at any time until the parent has settled.
  static std::mutex mutex;
  static auto* const births = new std::vector<std::shared_ptr<Birth>>;
  {
    std::lock_guard keep(mutex);
    births->push_back(birth);
  }
  if (parent_settles) {
    LOCKSTEP_RETURN_IF_ERROR(Settle(name, comm_, deadline));
    if (birth->Read() == nullptr) return std::shared_ptr<Connection>();
  }
  for (Pause pause; birth->Read() == nullptr; pause()) {
    if (deadline.Passed()) return NeverReturned(name, "there is no communicator");
  }
  return Adopt(name, birth->Read(), deadline);
}

Result<std::shared_ptr<Connection>> Connection::Split(int color, int key, Deadline deadline) {
  LOCKSTEP_RETURN_IF_ERROR(library().Has(Feature::kSplit));
  if (failed_.load()) return failure();
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<Connection> child,
      Child(
          "ncclCommSplit", /*parent_settles=*/true,
          [api = library().api(), color, key](Comm comm, Comm* child, Config* config) {
            return api.CommSplit(comm, color < 0 ? kNoColor : color, key, child, config);
          },
          deadline));
  if (child != nullptr || color < 0) return child;
  return FailWith(SystemFailed("nccl: ncclCommSplit said success and gave no communicator"));
}

Result<std::shared_ptr<Connection>> Connection::Shrink(std::span<const int> excluded, bool abort,
                                                       Deadline deadline) {
  LOCKSTEP_RETURN_IF_ERROR(library().Has(Feature::kShrink));
  if (failed_.load() && !abort) return failure();
  if (abort) {
    static_cast<void>(FailWith(SystemFailed("nccl: the communicator was ended by a shrink")));
  }
  return Child(
      "ncclCommShrink", /*parent_settles=*/!abort,
      [api = library().api(), ranks = std::vector<int>(excluded.begin(), excluded.end()), abort](
          Comm comm, Comm* child, Config* config) mutable {
        return api.CommShrink(comm, ranks.data(), static_cast<int>(ranks.size()), child, config,
                              abort ? kShrinkAbort : 0);
      },
      deadline);
}

Status Connection::Revoke(Deadline deadline) {
  LOCKSTEP_RETURN_IF_ERROR(library().Has(Feature::kRevoke));
  std::lock_guard lock(calling_);
  if (aborted_.load()) return Aborted();
  revoked_.store(true);  // before what is in flight ends, so that it is not taken for complete
  LOCKSTEP_RETURN_IF_ERROR(MakeBounded(
      "ncclCommRevoke", [api = library().api(), comm = comm_] { return api.CommRevoke(comm, 0); },
      deadline));
  return Settle("ncclCommRevoke", comm_, deadline);
}

Status Connection::Abort() {
  if (aborted_.exchange(true)) return OkStatus();
  std::unique_lock lock(calling_, std::defer_lock);
  // A call that is inside longer than this does not come back by itself: abort all the same.
  const Deadline patience = Deadline::AfterSeconds(kAbortPatienceSeconds);
  for (Pause pause; !lock.try_lock() && !patience.Passed();) pause();
  const auto made = CallBounded(
      [library = terms_.library, comm = comm_] { return library->api().CommAbort(comm); },
      Deadline::AfterSeconds(terms_.abort_seconds), terms_.enter_thread);
  if (!made.ok()) return FailWith(made.status());
  const std::optional<Code>& code = *made;
  Status status;
  if (!code) {
    status = SystemFailed(
        "nccl: ncclCommAbort did not return within {} s (compare NVIDIA/nccl issues 1013 and "
        "1777): this process can only be killed",
        terms_.abort_seconds);
  } else if (!WentWell(*code)) {
    status = Explain(library(), "ncclCommAbort", *code, nullptr);
  }
  static_cast<void>(FailWith(status.ok() ? Aborted() : status));
  return status;
}

Status Connection::Finalize(Deadline deadline) {
  const Api& api = library().api();
  if (!revoked_.load()) {
    LOCKSTEP_RETURN_IF_ERROR(MakeBounded(
        "ncclCommFinalize", [api, comm = comm_] { return api.CommFinalize(comm); }, deadline));
    LOCKSTEP_RETURN_IF_ERROR(Settle("ncclCommFinalize", comm_, deadline));
  }
  destroying_ = true;
  return MakeBounded(
      "ncclCommDestroy", [api, comm = comm_] { return api.CommDestroy(comm); }, deadline);
}

Status Connection::Close() {
  if (std::exchange(closed_, true) || aborted_.load()) return OkStatus();
  if (failed_.load()) return Abort();
  const Status status = Finalize(Deadline::AfterSeconds(terms_.finalize_seconds));
  if (status.ok() || destroying_) return status;
  const Status aborted = Abort();
  return aborted.ok() ? status : aborted;
}

}  // namespace lockstep::comm::nccl
