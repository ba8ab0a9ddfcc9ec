// NCCL's operations on streams. On a GPU they are launched by the stream's handle; with a stand-in
// library they run on the host and are waited for here. Await polls the library every 5 ms, because
// a failed peer shows there and not on the stream. Ids of new communicators travel through the
// Meeting.
#include "core/comm/nccl/nccl_communicator.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "core/base/print_stderr.h"
#include "core/comm/nccl/connection.h"
#include "core/comm/nccl/debug_log.h"
#include "core/comm/nccl/pause.h"
#include "core/device/native_stream.h"
#include "fmt/format.h"

namespace lockstep::comm::nccl {
namespace {

// How long an Await sleeps before it asks the library for errors that no stream shows.
constexpr double kPollSeconds = 0.005;

void EndProcess(const std::string& why) {
  PrintStderr("{}\n", why);
  std::fflush(stderr);
  _exit(static_cast<int>(ExitCode::kFailed));
}

// What a communicator and its children share.
struct Family {
  Meeting& meeting;
  device::Device& device;
  NcclOptions options;
  Terms terms;
  bool native = false;  // streams have handles
  int compute_capability = 0;
};

Result<std::unique_ptr<device::Buffer>> BarrierBuffer(device::Device& device) {
  return device.Allocate(static_cast<std::int64_t>(sizeof(double)));
}

// The id of a new communicator, from its rank 0 to all of them.
Result<UniqueId> ShareId(Meeting& meeting, const std::string& prefix, int rank, const Terms& terms,
                         Deadline deadline) {
  const std::string key = prefix + "/nccl_id";
  UniqueId id{};
  if (rank == 0) {
    auto made = std::make_shared<UniqueId>();
    LOCKSTEP_ASSIGN_OR_RETURN(const auto code, CallBounded(
                                                   [made, library = terms.library] {
                                                     return library->api().GetUniqueId(made.get());
                                                   },
                                                   deadline));
    if (!code) return DeadlineExceeded("nccl: ncclGetUniqueId did not return before the deadline");
    if (*code != kSuccess) {
      const char* last = terms.library->api().GetLastError(nullptr);
      return SystemFailed("nccl: {}; {}", terms.library->Describe("ncclGetUniqueId", *code), last);
    }
    id = *made;
    LOCKSTEP_RETURN_IF_ERROR(meeting.Put(key, std::string(id.internal, sizeof(id.internal))));
    return id;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string bytes, meeting.Get(key, deadline));
  if (bytes.size() != sizeof(id.internal)) {
    return SystemFailed("nccl: rank 0 left {} bytes of a unique id", bytes.size());
  }
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

Result<std::shared_ptr<Connection>> ConnectByMeeting(Family& family, const std::string& prefix,
                                                     int rank, int size, Deadline deadline) {
  LOCKSTEP_ASSIGN_OR_RETURN(const UniqueId id,
                            ShareId(family.meeting, prefix, rank, family.terms, deadline));
  return Connection::Connect(family.terms, id, rank, size, deadline);
}

class Adapter final : public NcclCommunicator {
 public:
  Adapter(std::shared_ptr<Connection> connection, std::shared_ptr<Family> family,
          std::unique_ptr<device::Buffer> barrier, std::string prefix)
      : connection_(std::move(connection)),
        family_(std::move(family)),
        barrier_(std::move(barrier)),
        prefix_(std::move(prefix)) {}
  ~Adapter() override {
    connection_.reset();
    // What a stand-in that could not be ended may still count down stays.
    if (stand_in_->unfinished.load() > 0) static_cast<void>(stand_in_.release());
  }

  const Capabilities& capabilities() const override { return NcclCapabilities(); }
  Status Supports(const Operation& operation) const override {
    return connection_->library().Takes(operation, family_->compute_capability);
  }
  int rank() const override { return connection_->rank(); }
  int size() const override { return connection_->size(); }

  Status Enqueue(const Operation& operation, const Buffers& buffers,
                 device::Stream& stream) override {
    LOCKSTEP_RETURN_IF_ERROR(ValidateCall(operation, buffers, rank(), size()));
    if (collective::IsFloat8(operation.type)) LOCKSTEP_RETURN_IF_ERROR(Supports(operation));
    if (family_->native) {
      auto* const native = dynamic_cast<device::NativeStream*>(&stream);
      if (native == nullptr) return InvalidInput("nccl: the stream is not one of a CUDA device");
      return EnqueueNative(operation, buffers, stream, *native);
    }
    if (!stream.inline_execution()) {
      stream.Enqueue([this, operation, buffers] { return RunOnHost(operation, buffers); });
      return OkStatus();
    }
    stream.Enqueue([&] { return RunOnHost(operation, buffers); });
    return stream.status();
  }
  Status Await(device::Stream& stream, Deadline deadline) override {
    if (!family_->native) return stream.Synchronize(deadline);
    for (;;) {
      const Deadline soon = Deadline::AfterSeconds(kPollSeconds);
      Status status = stream.Synchronize(deadline.Earlier(soon));
      if (status.ok()) return connection_->Health();  // an abort ends what is on the device, too
      if (status.code() != StatusCode::kDeadlineExceeded) return status;
      LOCKSTEP_RETURN_IF_ERROR(connection_->Poll());
      if (deadline.Passed()) return status;
    }
  }

  Status Abort() override { return connection_->Abort(); }
  Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    const std::string prefix = fmt::format("{}/{}", prefix_, splits_++);
    std::shared_ptr<Connection> child;
    if (connection_->library().Has(Feature::kSplit).ok()) {
      LOCKSTEP_ASSIGN_OR_RETURN(child, connection_->Split(color, key, deadline));
    } else {
      LOCKSTEP_ASSIGN_OR_RETURN(
          const SplitGroup group,
          AgreeOnGroup(family_->meeting, prefix, rank(), size(), color, key, deadline));
      if (group.rank < 0) return nullptr;
      LOCKSTEP_ASSIGN_OR_RETURN(
          child, ConnectByMeeting(*family_, group.prefix, group.rank, group.size, deadline));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(auto wrapped, Wrap(std::move(child)));
    return wrapped;
  }

  Status Close() override { return connection_->Close(); }
  Status StartGroup() override {
    LOCKSTEP_RETURN_IF_ERROR(connection_->Make(
        "ncclGroupStart", [&](Comm) { return connection_->library().api().GroupStart(); }));
    in_group_ = true;
    return OkStatus();
  }
  Status EndGroup() override {
    in_group_ = false;
    LOCKSTEP_RETURN_IF_ERROR(connection_->Make(
        "ncclGroupEnd", [&](Comm) { return connection_->library().api().GroupEnd(); }));
    return family_->native ? OkStatus() : AwaitStandIn();
  }
  Result<std::unique_ptr<NcclCommunicator>> Shrink(std::span<const int> excluded, bool abort,
                                                   Deadline deadline) override {
    LOCKSTEP_ASSIGN_OR_RETURN(auto child, connection_->Shrink(excluded, abort, deadline));
    ++splits_;
    return Wrap(std::move(child));
  }
  Status Revoke(Deadline deadline) override { return connection_->Revoke(deadline); }

 private:
  Status Launch(const Operation& operation, const Buffers& buffers, Stream handle) {
    const Api& api = connection_->library().api();
    const Buffers real = operation.collective == Collective::kBarrier
                             ? Buffers{barrier_->data(), barrier_->data()}
                             : buffers;
    if (family_->options.register_buffers) {
      LOCKSTEP_RETURN_IF_ERROR(Register(real.send, collective::SendBytes(operation, size())));
      LOCKSTEP_RETURN_IF_ERROR(Register(real.recv, collective::RecvBytes(operation, size())));
    }
    return connection_->Make(CallName(operation), [&](Comm comm) {
      return MakeCall(api, operation, real, comm, handle);
    });
  }
  Status EnqueueNative(const Operation& operation, const Buffers& buffers, device::Stream& stream,
                       device::NativeStream& native) {
    // In a group nothing runs before it ends: what marks the stream now would tell the wrong time.
    device::NativeStream& target = in_group_ ? native.Bare() : native;
    LOCKSTEP_RETURN_IF_ERROR(
        target.LaunchOn([&](void* handle) { return Launch(operation, buffers, handle); }));
    const bool blocks = stream.inline_execution() && operation.blocking == Blocking::kBlocking;
    if (!blocks || in_group_) return OkStatus();
    return Await(stream, Deadline::AfterSeconds(family_->options.operation_seconds));
  }
  // A stand-in's stream is the communicator's own; what is enqueued there is waited for here.
  Status RunOnHost(const Operation& operation, const Buffers& buffers) {
    LOCKSTEP_RETURN_IF_ERROR(Launch(operation, buffers, stand_in_.get()));
    return in_group_ ? OkStatus() : AwaitStandIn();
  }
  Status AwaitStandIn() {
    const Deadline deadline = Deadline::AfterSeconds(family_->options.operation_seconds);
    for (Pause pause; stand_in_->unfinished.load() > 0; pause()) {
      LOCKSTEP_RETURN_IF_ERROR(connection_->Poll());
      if (deadline.Passed()) {
        return DeadlineExceeded("nccl: an operation was not complete within {} s",
                                family_->options.operation_seconds);
      }
    }
    return connection_->Health();
  }
  Status Register(const void* data, std::int64_t bytes) {
    if (data == nullptr || bytes == 0) return OkStatus();
    const auto known = registered_.find(data);
    if (known != registered_.end() && known->second >= bytes) return OkStatus();
    registered_[data] = bytes;
    return connection_->Make("ncclCommRegister", [&](Comm comm) {
      void* handle = nullptr;  // lives as long as the communicator, which frees it
      return connection_->library().api().CommRegister(comm, const_cast<void*>(data),
                                                       static_cast<std::size_t>(bytes), &handle);
    });
  }

  Result<std::unique_ptr<NcclCommunicator>> Wrap(std::shared_ptr<Connection> connection) {
    if (connection == nullptr) return nullptr;
    LOCKSTEP_ASSIGN_OR_RETURN(auto barrier, BarrierBuffer(family_->device));
    return std::make_unique<Adapter>(std::move(connection), family_, std::move(barrier),
                                     fmt::format("{}/{}", prefix_, splits_));
  }

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Family> family_;
  std::unique_ptr<device::Buffer> barrier_;  // one element, of the device
  std::string prefix_;
  int splits_ = 0;
  bool in_group_ = false;
  std::map<const void*, std::int64_t> registered_;  // bytes by address
  std::unique_ptr<StandInStream> stand_in_ = std::make_unique<StandInStream>();
};

Terms TermsOf(const NcclOptions& options, std::shared_ptr<const Library> library,
              device::NativeDevice* native) {
  Terms terms = {.library = std::move(library),
                 .operation_seconds = options.operation_seconds,
                 .abort_seconds = options.abort_seconds,
                 .finalize_seconds = options.finalize_seconds,
                 .enter_thread = {},
                 .given_up = options.given_up,
                 .last_resort = options.last_resort != nullptr ? options.last_resort : &EndProcess};
  if (native != nullptr) terms.enter_thread = [native] { return native->EnterThread(); };
  return terms;
}

}  // namespace

const Capabilities& NcclCapabilities() {
  static const Capabilities capabilities = {
      .backend = "nccl",
      .moves_data = true,
      .host_moves = false,
      .can_abort = true,
      .supports = [](const Operation&) { return OkStatus(); },
  };
  return capabilities;
}

Result<NcclLibraryFacts> ExamineNccl(const std::string& library) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto opened, Library::Open(library));
  return NcclLibraryFacts{opened->path(), opened->VersionText(), opened->version(),
                          opened->stand_in()};
}

Result<std::unique_ptr<NcclCommunicator>> ConnectNccl(int rank, int size, Meeting& meeting,
                                                      const std::string& prefix,
                                                      device::Device& device,
                                                      const NcclOptions& options,
                                                      Deadline deadline) {
  if (size < 1 || rank < 0 || rank >= size) {
    return InvalidInput("nccl: rank {} of {} ranks does not exist", rank, size);
  }
  static_cast<void>(CaptureDebugLog());
  LOCKSTEP_ASSIGN_OR_RETURN(auto library, Library::Open(options.library));
  if (options.register_buffers) {
    LOCKSTEP_RETURN_IF_ERROR(library->Has(Feature::kRegister));
  }
  auto* const native = dynamic_cast<device::NativeDevice*>(&device);
  if (native == nullptr && !library->stand_in()) {
    return InvalidInput("nccl: {} works on CUDA devices only, not on the device '{}'",
                        library->path(), device.name());
  }
  auto family = std::make_shared<Family>(
      Family{meeting, device, options, TermsOf(options, std::move(library), native),
             native != nullptr, native != nullptr ? native->ComputeCapability() : 0});
  LOCKSTEP_ASSIGN_OR_RETURN(auto barrier, BarrierBuffer(device));
  LOCKSTEP_ASSIGN_OR_RETURN(auto connection,
                            ConnectByMeeting(*family, prefix, rank, size, deadline));
  return std::make_unique<Adapter>(std::move(connection), std::move(family), std::move(barrier),
                                   prefix);
}

}  // namespace lockstep::comm::nccl
