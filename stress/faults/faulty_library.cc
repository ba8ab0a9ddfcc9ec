// Changes what the library does with a call, below the journal. The work that the backend enqueues
// is wrapped in a stream that alters, delays or swallows it.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/deadline.h"
#include "core/comm/nccl/nccl_communicator.h"
#include "core/device/forwarding_stream.h"
#include "stress/faults/faulty_communicator.h"

namespace lockstep::stress::faults {
namespace {

constexpr double kSlowSeconds = 0.1;

// What is done to one collective when its stream gets there.
struct Ordeal {
  std::vector<FaultGate::Taken> faults;
  collective::Operation operation;
  collective::Buffers buffers;
  int size = 1;
};

Status Before(const Ordeal& ordeal, FaultGate& gate) {
  for (const FaultGate::Taken& taken : ordeal.faults) {
    if (taken.fault.kind == FaultKind::kSlowCollective) {
      gate.Fired(taken);
      const double seconds = taken.fault.duration_seconds.value_or(kSlowSeconds);
      LOCKSTEP_RETURN_IF_ERROR(gate.Sleep(static_cast<std::int64_t>(seconds * 1e9)));
    } else if (taken.fault.kind == FaultKind::kFailedCollective) {
      gate.Fired(taken);
      return SystemFailed("injected failure of {}", collective::Describe(ordeal.operation));
    }
  }
  return OkStatus();
}

bool Fails(const Ordeal& ordeal) {
  return std::ranges::any_of(ordeal.faults, [](const FaultGate::Taken& taken) {
    return taken.fault.kind == FaultKind::kFailedCollective;
  });
}

Status After(const Ordeal& ordeal, FaultGate& gate) {
  for (const FaultGate::Taken& taken : ordeal.faults) {
    if (taken.fault.kind == FaultKind::kCorruptResult) {
      if (ordeal.buffers.recv == nullptr ||
          collective::RecvBytes(ordeal.operation, ordeal.size) == 0)
        continue;
      gate.Fired(taken);
      // The lowest bit of the first element: the smallest error there is.
      *static_cast<unsigned char*>(ordeal.buffers.recv) ^= 1;
    } else if (taken.fault.kind == FaultKind::kDroppedCompletion) {
      gate.Fired(taken);
      LOCKSTEP_RETURN_IF_ERROR(gate.Sleep(static_cast<std::int64_t>(kForEverSeconds * 1e9)));
    }
  }
  return OkStatus();
}

}  // namespace

// What the backend enqueues runs between Before and After, as one piece of work.
class FaultyLibrary::FaultyStream final : public device::ForwardingStream {
 public:
  FaultyStream(device::Stream& stream, Ordeal ordeal, FaultGate& gate)
      : ForwardingStream(stream), ordeal_(std::move(ordeal)), gate_(gate) {}

  void Enqueue(Work work) override {
    inner().Enqueue([ordeal = ordeal_, &gate = gate_, work = std::move(work)]() -> Status {
      LOCKSTEP_RETURN_IF_ERROR(Before(ordeal, gate));
      LOCKSTEP_RETURN_IF_ERROR(work());
      return After(ordeal, gate);
    });
  }

 private:
  Ordeal ordeal_;
  FaultGate& gate_;
};

// The same where the library launches by the stream's handle: Before and After are work of the
// host's, in front of the operation and behind it.
class FaultyLibrary::FaultyNativeStream final : public device::ForwardingNativeStream {
 public:
  FaultyNativeStream(device::Stream& stream, device::NativeStream& native, Ordeal ordeal,
                     FaultGate& gate)
      : ForwardingNativeStream(stream, native), ordeal_(std::move(ordeal)), gate_(gate) {}

  Status LaunchOn(const Launch& launch) override {
    inner().Enqueue([ordeal = ordeal_, &gate = gate_] { return faults::Before(ordeal, gate); });
    // Once it is launched, nothing keeps it from running: one that fails is not.
    if (Fails(ordeal_)) return OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(native().LaunchOn(launch));
    inner().Enqueue([ordeal = ordeal_, &gate = gate_] { return faults::After(ordeal, gate); });
    return OkStatus();
  }

 private:
  Ordeal ordeal_;
  FaultGate& gate_;
};

// From here on what the rank calls is collected and never runs.
Status FaultyLibrary::LeaveGroupOpen(std::vector<FaultGate::Taken>& faults) {
  const auto open = std::find_if(faults.begin(), faults.end(), [](const FaultGate::Taken& taken) {
    return taken.fault.kind == FaultKind::kLeaveGroupOpen;
  });
  if (open == faults.end()) return OkStatus();
  auto* const nccl = dynamic_cast<comm::nccl::NcclCommunicator*>(&inner());
  if (nccl == nullptr) {
    return Unsupported("the fault 'leave_group_open' needs --backend=nccl; choose another fault");
  }
  gate_.Fired(*open);
  faults.erase(open);
  return nccl->StartGroup();
}

Status FaultyLibrary::Enqueue(const collective::Operation& operation,
                              const collective::Buffers& buffers, device::Stream& stream) {
  std::vector<FaultGate::Taken> faults = gate_.TakeForLibrary();
  LOCKSTEP_RETURN_IF_ERROR(LeaveGroupOpen(faults));
  if (faults.empty()) return inner().Enqueue(operation, buffers, stream);
  Ordeal ordeal{std::move(faults), operation, buffers, size()};
  if (stream.inline_execution()) {
    // Backends need not go through an inline stream.
    LOCKSTEP_RETURN_IF_ERROR(Before(ordeal, gate_));
    LOCKSTEP_RETURN_IF_ERROR(inner().Enqueue(operation, buffers, stream));
    return After(ordeal, gate_);
  }
  if (auto* const native = dynamic_cast<device::NativeStream*>(&stream)) {
    FaultyNativeStream faulty(stream, *native, std::move(ordeal), gate_);
    return inner().Enqueue(operation, buffers, faulty);
  }
  FaultyStream faulty(stream, std::move(ordeal), gate_);
  return inner().Enqueue(operation, buffers, faulty);
}

Result<std::unique_ptr<comm::Communicator>> FaultyLibrary::Split(int color, int key,
                                                                 Deadline deadline) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<comm::Communicator> child,
                            inner().Split(color, key, deadline));
  if (child == nullptr) return std::unique_ptr<comm::Communicator>();
  return std::unique_ptr<comm::Communicator>(
      std::make_unique<FaultyLibrary>(std::move(child), gate_));
}

}  // namespace lockstep::stress::faults
