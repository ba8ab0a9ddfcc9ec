#include <algorithm>
#include <cstring>
#include <utility>

#include "stress/faults/faulty_communicator.h"

namespace lockstep {

struct FaultyCalls::Shared {
  FaultGate& gate;
  Device& device;
  std::int64_t calls = 0;
};

struct FaultyCalls::Held {
  FaultGate::Taken taken;
  Operation operation;
  Buffers buffers;
  Stream& stream;
};

namespace {

// Another type of the same size, so that the buffers fit.
DataType OtherType(DataType type) {
  switch (type) {
    case DataType::kF16:
      return DataType::kBf16;
    case DataType::kBf16:
      return DataType::kF16;
    case DataType::kF32:
      return DataType::kI32;
    case DataType::kI32:
      return DataType::kF32;
    case DataType::kF64:
      return DataType::kI64;
    case DataType::kI64:
      return DataType::kF64;
    case DataType::kI8:
      return DataType::kU8;
    case DataType::kU8:
      return DataType::kI8;
    case DataType::kF8E4M3:
      return DataType::kF8E5M2;
    case DataType::kF8E5M2:
      return DataType::kF8E4M3;
  }
  return type;
}

}  // namespace

FaultyCalls::FaultyCalls(Communicator& inner, FaultGate& gate, Device& device)
    : ForwardingCommunicator(inner), shared_(std::make_shared<Shared>(Shared{gate, device})) {}

FaultyCalls::FaultyCalls(std::unique_ptr<Communicator> inner, FaultyCalls& parent)
    : ForwardingCommunicator(std::move(inner)), shared_(parent.shared_) {}

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

Result<bool> FaultyCalls::Suffer(const FaultGate::Taken& taken, Operation& operation,
                                 Buffers& buffers, Stream& stream) {
  const CollectiveInfo& info = InfoOf(operation.collective);
  const bool has_data = operation.collective != Collective::kBarrier;
  FaultGate& gate = shared_->gate;
  switch (taken.fault.kind) {
    case FaultKind::kSkipCollective:
      gate.Fired(taken);
      return true;
    case FaultKind::kExtraCollective: {
      gate.Fired(taken);
      LOCKSTEP_ASSIGN_OR_RETURN(void* const data, Scratch(64));
      Operation extra;
      extra.count = 1;
      LOCKSTEP_RETURN_IF_ERROR(inner().Enqueue(extra, {data, data}, stream));
      return false;
    }
    case FaultKind::kWrongCount: {
      if (!has_data || operation.count == 0) return false;
      gate.Fired(taken);
      if (operation.count > 1) {
        --operation.count;
        return false;
      }
      operation.count = 2;
      const std::int64_t bytes =
          std::max(SendBytes(operation, size()), RecvBytes(operation, size()));
      LOCKSTEP_ASSIGN_OR_RETURN(void* const data, Scratch(bytes + 64));
      buffers = {data, data};
      return false;
    }
    case FaultKind::kWrongType:
      if (!has_data) return false;
      gate.Fired(taken);
      operation.type = OtherType(operation.type);
      return false;
    case FaultKind::kWrongRoot:
      if (!info.rooted || size() < 2) return false;
      gate.Fired(taken);
      operation.root = (operation.root + 1) % size();
      return false;
    case FaultKind::kWrongOp:
      if (!info.reduces) return false;
      gate.Fired(taken);
      operation.reduction =
          operation.reduction == Reduction::kMax ? Reduction::kSum : Reduction::kMax;
      return false;
    case FaultKind::kWrongOrder:
      // It fires when there is a next one to change places with; until then the program waits in
      // vain.
      held_ = std::make_unique<Held>(Held{taken, operation, buffers, stream});
      return true;
    case FaultKind::kCorruptInput: {
      if (!has_data || buffers.send == nullptr || SendBytes(operation, size()) == 0) return false;
      gate.Fired(taken);
      // A high bit of the first element: the lowest one may vanish when a sum is rounded.
      auto* const high =
          static_cast<unsigned char*>(const_cast<void*>(buffers.send)) + SizeOf(operation.type) - 1;
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

Status FaultyCalls::Enqueue(const Operation& operation, const Buffers& buffers, Stream& stream) {
  FaultGate& gate = shared_->gate;
  LOCKSTEP_RETURN_IF_ERROR(gate.Reach(FaultMoment::Kind::kCollective, ++shared_->calls));
  Operation called = operation;
  Buffers used = buffers;
  const bool was_held = held_ != nullptr;
  if (was_held) gate.Fired(held_->taken);
  for (const FaultGate::Taken& taken : gate.TakeForCall()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool dealt_with, Suffer(taken, called, used, stream));
    if (dealt_with) return OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(inner().Enqueue(called, used, stream));
  return was_held ? CallHeld() : OkStatus();
}

Result<std::unique_ptr<Communicator>> FaultyCalls::Split(int color, int key, Deadline deadline) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> child,
                            inner().Split(color, key, deadline));
  if (child == nullptr) return std::unique_ptr<Communicator>();
  return std::unique_ptr<Communicator>(std::make_unique<FaultyCalls>(std::move(child), *this));
}

}  // namespace lockstep
