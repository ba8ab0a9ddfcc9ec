// MPI as stream-ordered operations. A plain blocking call on an inline stream takes the shortest
// path, because that is what benchmarks measure. Large counts are divided where elements are
// independent. Where threads call, a flag proves that only one of them is inside MPI. An error or a
// passed deadline makes the session unfit for MPI_Finalize.
#include "core/comm/mpi/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "core/comm/mpi/mpi_call.h"
#include "core/comm/mpi/mpi_session.h"

namespace lockstep::comm::mpi {
namespace {

constexpr std::int64_t kMostCount = std::numeric_limits<int>::max();
constexpr std::size_t kMostRequests = 1 << 16;
constexpr int kTestsPerLookAtTheClock = 64;  // a look costs as much as a few tests

// Operations that are independent element by element can be done in several calls.
bool IsDivisible(Collective collective) {
  return collective != Collective::kAllGather && collective != Collective::kReduceScatter;
}

Status Supports(const Operation& operation) {
  if (operation.count <= kMostCount || IsDivisible(operation.collective)) return OkStatus();
  return Unsupported(
      "mpi: {}: at most {} elements a rank fit a call of MPI; ask for fewer, or for a wider type",
      collective::Describe(operation), kMostCount);
}

// Marks that a thread is inside MPI; says whether it was alone.
class Inside {
 public:
  explicit Inside(std::atomic_flag& in_use)
      : in_use_(in_use), alone_(!in_use.test_and_set(std::memory_order_acquire)) {}
  ~Inside() {
    if (alone_) in_use_.clear(std::memory_order_release);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  bool alone() const { return alone_; }

 private:
  std::atomic_flag& in_use_;
  bool alone_;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<MpiSession> session, MPI_Comm comm, bool owned)
      : session_(std::move(session)), comm_(comm), owned_(owned) {
    requests_.reserve(64);
  }
  ~MpiCommunicator() override {
    if (!requests_.empty()) session_->MarkSick();  // posted and never awaited
    if (owned_ && session_->healthy()) MPI_Comm_free(&comm_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  Status Learn() {
    LOCKSTEP_RETURN_IF_ERROR(FromMpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank"));
    return FromMpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }

  const Capabilities& capabilities() const override { return MpiCapabilities(); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status Enqueue(const Operation& operation, const Buffers& buffers, Stream& stream) override {
    LOCKSTEP_RETURN_IF_ERROR(ValidateCall(operation, buffers, rank_, size_));
    if (stream.inline_execution()) [[likely]] {
      // What stream.Enqueue would do, without the wrapping: barriers stand before measured calls.
      if (!stream.ok()) [[unlikely]]
        return stream.status();
      if (IsPlain(operation)) [[likely]] {
        const MpiCall call = CallOf(operation, buffers);
        return Told(stream, call, BlockingCall(call, comm_));
      }
      Status status = Alone([&] { return Run(operation, buffers); });
      return status.ok() ? status : Fail(stream, std::move(status));
    }
    if (session_->options().threads == MpiThreads::kCaller) {
      return Unsupported("mpi: connected for inline streams only; connect with threads");
    }
    stream.Enqueue(
        [this, operation, buffers] { return Alone([&] { return Run(operation, buffers); }); });
    return OkStatus();
  }

  Status EnqueueTimed(const Operation& operation, const Buffers& buffers, Stream& stream,
                      Interval& timed) override {
    const bool plain = ValidateCall(operation, buffers, rank_, size_).ok() &&
                       stream.inline_execution() && stream.ok() && IsPlain(operation);
    if (!plain) return Communicator::EnqueueTimed(operation, buffers, stream, timed);
    const MpiCall call = CallOf(operation, buffers);
    timed.entry = NowTicks();
    const int code = BlockingCall(call, comm_);
    timed.exit = NowTicks();
    return Told(stream, call, code);
  }

  Status Await(Stream& stream, Deadline deadline) override {
    if (stream.inline_execution()) {
      if (requests_.empty()) return stream.status();
      stream.Enqueue([&] { return Alone([&] { return CompleteAll(deadline); }); });
      return stream.status();
    }
    stream.Enqueue([this, deadline] { return Alone([&] { return CompleteAll(deadline); }); });
    Status status = stream.Synchronize(deadline);
    if (status.code() == StatusCode::kDeadlineExceeded) session_->MarkSick();
    return status;
  }

  Status Abort() override {
    session_->MarkSick();
    return OkStatus();
  }
  Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    MPI_Comm comm = MPI_COMM_NULL;
    LOCKSTEP_RETURN_IF_ERROR(Alone([&] { return SplitInto(color, key, deadline, comm); }));
    if (comm == MPI_COMM_NULL) return nullptr;
    auto child = std::make_unique<MpiCommunicator>(session_, comm, /*owned=*/true);
    LOCKSTEP_RETURN_IF_ERROR(child->Learn());
    return child;
  }

 private:
  // Calls a function that calls MPI, if no other thread is inside (where that matters). Its
  // failure fails the session.
  template <typename Function>
  Status Alone(Function function) {
    const MpiThreads threads = session_->options().threads;
    if (threads == MpiThreads::kCaller) [[likely]]
      return Noted(function());
    const Inside inside(threads == MpiThreads::kMany ? in_use_ : session_->in_use());
    if (inside.alone()) return Noted(function());
    return InvalidInput(
        "mpi: two streams use it at the same time; use one, or a communicator for "
        "each with MPI_THREAD_MULTIPLE");
  }
  // What was refused did no harm.
  Status Noted(Status status) {
    const StatusCode code = status.code();
    if (code == StatusCode::kSystemFailed || code == StatusCode::kDeadlineExceeded) {
      session_->MarkSick();
    }
    return status;
  }
  // What a blocking call returned.
  Status Told(Stream& stream, const MpiCall& call, int code) {
    if (code == MPI_SUCCESS) [[likely]]
      return OkStatus();
    return Fail(stream, BlockingError(call, code));
  }
  Status Fail(Stream& stream, Status status) {
    stream.Enqueue([&status] { return status; });
    return Noted(std::move(status));
  }
  // Whether one blocking call is all that there is to do.
  bool IsPlain(const Operation& operation) const {
    return operation.blocking == Blocking::kBlocking && requests_.empty() &&
           operation.count <= session_->options().most_elements_per_call &&
           operation.collective != Collective::kBroadcast &&
           operation.collective != Collective::kReduceScatter &&
           session_->options().threads == MpiThreads::kCaller;
  }

  Status Run(const Operation& operation, const Buffers& buffers) {
    // Stream order: a blocking operation follows those posted before it.
    if (operation.blocking == Blocking::kBlocking && !requests_.empty()) {
      LOCKSTEP_RETURN_IF_ERROR(CompleteAllBlocking());
    }
    const MpiCall call = CallOf(operation, buffers);
    if (operation.collective != Collective::kBroadcast) [[likely]]
      return RunCalls(operation, call);
    LOCKSTEP_RETURN_IF_ERROR(RunCalls(operation, call));
    // Without elements a buffer may be null, which memcpy does not take.
    const bool copies_to_itself = rank_ == operation.root && operation.count > 0 &&
                                  buffers.recv != nullptr && buffers.recv != buffers.send;
    if (copies_to_itself) {
      std::memcpy(buffers.recv, buffers.send,
                  static_cast<std::size_t>(operation.count * collective::SizeOf(operation.type)));
    }
    return OkStatus();
  }

  MpiCall CallOf(const Operation& operation, const Buffers& buffers) const {
    const Collective collective = operation.collective;
    MpiCall call{.collective = collective,
                 .send = buffers.send,
                 .recv = buffers.recv,
                 .type = session_->TypeOf(operation.type),
                 .op = session_->OpOf(operation.type, operation.reduction),
                 .root = operation.root};
    call.count = static_cast<int>(operation.count);  // of a part, where it takes several
    if (collective == Collective::kAllReduce) [[likely]] {
      if (call.send == call.recv) call.send = MPI_IN_PLACE;
      return call;
    }
    const bool is_root = rank_ == operation.root;
    const auto own_block =
        static_cast<std::ptrdiff_t>(rank_) * operation.count * collective::SizeOf(operation.type);
    if (collective == Collective::kReduce && is_root && call.send == call.recv) {
      call.send = MPI_IN_PLACE;
    }
    if (collective == Collective::kAllGather &&
        call.send == static_cast<char*>(call.recv) + own_block) {
      call.send = MPI_IN_PLACE;
    }
    // MPI broadcasts in one buffer: what the root sends, what the others receive.
    if (collective == Collective::kBroadcast && is_root) call.recv = const_cast<void*>(call.send);
    return call;
  }

  Status RunCalls(const Operation& operation, const MpiCall& whole) {
    const std::int64_t most =
        IsDivisible(operation.collective) ? session_->options().most_elements_per_call : kMostCount;
    if (operation.count <= most) [[likely]]
      return RunCall(operation, whole);
    LOCKSTEP_RETURN_IF_ERROR(Supports(operation));
    const std::int64_t size = collective::SizeOf(operation.type);
    for (std::int64_t done = 0; done < operation.count; done += most) {
      MpiCall part = whole;
      part.count = static_cast<int>(std::min(most, operation.count - done));
      if (part.send != nullptr && part.send != MPI_IN_PLACE) {
        part.send = static_cast<const char*>(whole.send) + done * size;
      }
      if (part.recv != nullptr) part.recv = static_cast<char*>(whole.recv) + done * size;
      LOCKSTEP_RETURN_IF_ERROR(RunCall(operation, part));
    }
    return OkStatus();
  }

  Status RunCall(const Operation& operation, const MpiCall& call) {
    if (call.collective == Collective::kReduceScatter) {
      const auto block = operation.count * collective::SizeOf(operation.type);
      if (call.recv == static_cast<const char*>(call.send) + rank_ * block) {
        return ReduceScatterInPlace(operation, call);
      }
    }
    if (operation.blocking == Blocking::kNonblocking) return Post(operation, call);
    const int code = BlockingCall(call, comm_);
    return code == MPI_SUCCESS ? OkStatus() : BlockingError(call, code);
  }

  // NCCL's in place has the result in this rank's block of the send buffer, MPI's has it in the
  // first block; and MPI forbids buffers that overlap otherwise.
  Status ReduceScatterInPlace(const Operation& operation, const MpiCall& call) {
    if (operation.blocking == Blocking::kNonblocking) {
      return Unsupported(
          "mpi: {}: non-blocking in place does not exist; use blocking, or two buffers",
          collective::Describe(operation));
    }
    MpiCall in_place = call;
    in_place.send = MPI_IN_PLACE;
    in_place.recv = const_cast<void*>(call.send);
    const int code = BlockingCall(in_place, comm_);
    if (code != MPI_SUCCESS) return BlockingError(in_place, code);
    if (call.recv != call.send && operation.count > 0) {  // null without elements
      std::memcpy(call.recv, call.send,
                  static_cast<std::size_t>(operation.count * collective::SizeOf(operation.type)));
    }
    return OkStatus();
  }

  Status Post(const Operation& operation, const MpiCall& call) {
    if (requests_.size() >= kMostRequests) {
      return Unsupported("mpi: {}: {} operations were posted without an Await; Await sooner",
                         collective::Describe(operation), requests_.size());
    }
    MPI_Request request = MPI_REQUEST_NULL;
    LOCKSTEP_RETURN_IF_ERROR(PostCall(call, comm_, request));
    requests_.push_back(request);
    return OkStatus();
  }
  // In order, so that an error is that of its operation; each test moves all of them on.
  Status CompleteAll(Deadline deadline) {
    std::size_t first_open = 0;
    for (int tests = 0; first_open < requests_.size();) {
      int done = 0;
      LOCKSTEP_RETURN_IF_ERROR(
          FromMpi(MPI_Test(&requests_[first_open], &done, MPI_STATUS_IGNORE), "MPI_Test"));
      if (done != 0) {
        ++first_open;
      } else if (++tests % kTestsPerLookAtTheClock == 0 && deadline.Passed()) {
        return DeadlineExceeded("mpi: {} of {} posted operations are not complete",
                                requests_.size() - first_open, requests_.size());
      }
    }
    requests_.clear();
    return OkStatus();
  }

  // As unbounded as the blocking call that follows it.
  Status CompleteAllBlocking() {
    for (MPI_Request& request : requests_) {
      LOCKSTEP_RETURN_IF_ERROR(FromMpi(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait"));
    }
    requests_.clear();
    return OkStatus();
  }
  // MPI_Comm_split knows no deadline, so first wait until everybody is there.
  Status SplitInto(int color, int key, Deadline deadline, MPI_Comm& comm) {
    MPI_Request all_here = MPI_REQUEST_NULL;
    LOCKSTEP_RETURN_IF_ERROR(FromMpi(MPI_Ibarrier(comm_, &all_here), "MPI_Ibarrier"));
    requests_.push_back(all_here);
    LOCKSTEP_RETURN_IF_ERROR(CompleteAll(deadline));
    return FromMpi(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &comm),
                   "MPI_Comm_split");
  }

  std::shared_ptr<MpiSession> session_;
  MPI_Comm comm_;
  bool owned_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Request> requests_;
  std::atomic_flag in_use_;
};

}  // namespace

const Capabilities& MpiCapabilities() {
  static const Capabilities capabilities = {
      .backend = "mpi", .moves_data = true, .can_abort = false, .supports = &Supports};
  return capabilities;
}

Result<std::unique_ptr<Communicator>> ConnectMpi(const MpiOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto session, MpiSession::Open(options));
  auto world = std::make_unique<MpiCommunicator>(std::move(session), MPI_COMM_WORLD,
                                                 /*owned=*/false);
  LOCKSTEP_RETURN_IF_ERROR(world->Learn());
  return world;
}

}  // namespace lockstep::comm::mpi
