// Changes what the program calls before it is journaled. A call is left out, added, held back
// behind the next one, or made with other arguments.
#include <utility>

#include "core/base/check.h"
#include "stress/faults/faulty_communicator.h"

namespace lockstep::stress::faults {

struct FaultyCalls::Shared {
  FaultGate& gate;
  device::Device& device;
  std::int64_t calls = 0;
};

struct FaultyCalls::Held {
  FaultGate::Taken taken;
  collective::Operation operation;
  collective::Buffers buffers;
  device::Stream& stream;
};

namespace {

// Another type of the same size, so that the buffers fit.
collective::DataType OtherType(collective::DataType type) {
  using enum collective::DataType;
  static constexpr std::pair<collective::DataType, collective::DataType> kAlike[] = {
      {kF16, kBf16}, {kF32, kI32}, {kF64, kI64}, {kI8, kU8}, {kF8E4M3, kF8E5M2}};
  for (const auto& [one, other] : kAlike) {
    if (type == one) return other;
    if (type == other) return one;
  }
  LOCKSTEP_CHECK(false, "a DataType that is not in the table");
  return type;
}

// Whether the fault can change this call.
bool Concerns(FaultKind fault, const collective::Operation& operation,
              const collective::Buffers& buffers, int size) {
  const collective::CollectiveInfo& info = collective::InfoOf(operation.collective);
  const bool has_data = operation.collective != collective::Collective::kBarrier;
  switch (fault) {
    case FaultKind::kSkipCollective:
    case FaultKind::kExtraCollective:
      return true;
    case FaultKind::kWrongCount:
      return has_data && operation.count != 0;
    case FaultKind::kWrongType:
      return has_data;
    case FaultKind::kWrongRoot:  // of two ranks, a message has no other peer
      return info.rooted && size > (collective::IsMessage(operation.collective) ? 2 : 1);
    case FaultKind::kWrongOp:
      return info.reduces;
    case FaultKind::kCorruptInput:
      return has_data && buffers.send != nullptr && collective::SendBytes(operation, size) != 0;
    default:
      return false;
  }
}

}  // namespace

FaultyCalls::FaultyCalls(comm::Communicator& inner, FaultGate& gate, device::Device& device)
    : comm::ForwardingCommunicator(inner),
      shared_(std::make_shared<Shared>(Shared{gate, device})) {}

FaultyCalls::FaultyCalls(std::unique_ptr<comm::Communicator> inner, FaultyCalls& parent)
    : comm::ForwardingCommunicator(std::move(inner)), shared_(parent.shared_) {}

FaultyCalls::~FaultyCalls() = default;

Result<void*> FaultyCalls::Scratch(std::int64_t bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto buffer, shared_->device.Allocate(bytes));
  scratch_.push_back(std::move(buffer));
  return scratch_.back()->data();
}

Status FaultyCalls::CallHeld() {
  if (held_ == nullptr) return OkStatus();
  const std::unique_ptr<Held> held = std::move(held_);
  return inner().Enqueue(held->operation, held->buffers, held->stream);
}

Result<bool> FaultyCalls::Inject(const FaultGate::Taken& taken, collective::Operation& operation,
                                 collective::Buffers& buffers, device::Stream& stream) {
  if (taken.fault.kind == FaultKind::kWrongOrder) {
    // It fires when there is a next one to change places with; until then the program waits in
    // vain.
    held_ = std::make_unique<Held>(Held{taken, operation, buffers, stream});
    return true;
  }
  if (!Concerns(taken.fault.kind, operation, buffers, size())) return false;
  shared_->gate.Fired(taken);
  switch (taken.fault.kind) {
    case FaultKind::kSkipCollective:
      return true;
    case FaultKind::kExtraCollective: {
      LOCKSTEP_ASSIGN_OR_RETURN(void* const data, Scratch(64));
      collective::Operation extra;
      extra.count = 1;
      LOCKSTEP_RETURN_IF_ERROR(inner().Enqueue(extra, {data, data}, stream));
      return false;
    }
    case FaultKind::kWrongCount: {
      if (operation.count > 1) {
        --operation.count;
        return false;
      }
      operation.count = 2;
      const std::int64_t bytes = collective::MessageBytes(operation, size());
      LOCKSTEP_ASSIGN_OR_RETURN(void* const data, Scratch(bytes + 64));
      buffers = {data, data};
      return false;
    }
    case FaultKind::kWrongType:
      operation.type = OtherType(operation.type);
      return false;
    case FaultKind::kWrongRoot:
      do {
        operation.root = (operation.root + 1) % size();
      } while (operation.root == rank() && collective::IsMessage(operation.collective));
      return false;
    case FaultKind::kWrongOp:
      operation.reduction = operation.reduction == collective::Reduction::kMax
                                ? collective::Reduction::kSum
                                : collective::Reduction::kMax;
      return false;
    case FaultKind::kCorruptInput: {
      // A high bit of the first element: the lowest one may vanish when a sum is rounded.
      auto* const high = static_cast<unsigned char*>(const_cast<void*>(buffers.send)) +
                         collective::SizeOf(operation.type) - 1;
      stream.Enqueue([high] {
        *high ^= 0x40;
        return OkStatus();
      });
      return false;
    }
    default:
      return false;
  }
}

Status FaultyCalls::Enqueue(const collective::Operation& operation,
                            const collective::Buffers& buffers, device::Stream& stream) {
  FaultGate& gate = shared_->gate;
  LOCKSTEP_RETURN_IF_ERROR(gate.Reach(FaultMoment::Kind::kCollective, ++shared_->calls));
  collective::Operation called = operation;
  collective::Buffers used = buffers;
  const bool was_held = held_ != nullptr;
  if (was_held) gate.Fired(held_->taken);
  for (const FaultGate::Taken& taken : gate.TakeForCall()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool dealt_with, Inject(taken, called, used, stream));
    if (dealt_with) return OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(inner().Enqueue(called, used, stream));
  return was_held ? CallHeld() : OkStatus();
}

Result<std::unique_ptr<comm::Communicator>> FaultyCalls::Split(int color, int key,
                                                               Deadline deadline) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<comm::Communicator> child,
                            inner().Split(color, key, deadline));
  if (child == nullptr) return std::unique_ptr<comm::Communicator>();
  return std::unique_ptr<comm::Communicator>(
      std::make_unique<FaultyCalls>(std::move(child), *this));
}

}  // namespace lockstep::stress::faults
