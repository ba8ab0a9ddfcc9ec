#include "core/ddp/host_values.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep::ddp {

Result<HostValues::Handle> HostValues::FreeSlot(std::int64_t bytes) {
  for (Handle& slot : slots_) {
    if (slot.use_count() == 1 && slot->work.done() && slot->device->bytes() >= bytes) return slot;
  }
  auto slot = std::make_shared<Slot>();
  LOCKSTEP_ASSIGN_OR_RETURN(slot->device, launcher_.ports().device.Allocate(bytes));
  slots_.push_back(slot);
  return slot;
}

Result<HostValues::Handle> HostValues::LaunchBytes(const Operation& operation,
                                                   std::span<const std::byte> values,
                                                   Purpose purpose) {
  const EnginePorts& ports = launcher_.ports();
  const auto sent = static_cast<std::int64_t>(values.size());
  LOCKSTEP_CHECK(sent == operation.count * collective::SizeOf(operation.type),
                 "as many values as the operation counts");
  const bool gathers = operation.collective == Collective::kAllGather;
  const std::int64_t result = gathers ? sent * ports.communicator.size() : sent;
  LOCKSTEP_ASSIGN_OR_RETURN(Handle slot, FreeSlot(result));
  slot->result_bytes = result;
  slot->host.resize(static_cast<std::size_t>(result));
  std::copy(values.begin(), values.end(), slot->host.begin());
  auto* recv = static_cast<std::byte*>(slot->device->data());
  std::byte* send = gathers ? recv + sent * ports.communicator.rank() : recv;
  ports.kernels.Copy(ports.compute, send, slot->host.data(), sent);
  LOCKSTEP_ASSIGN_OR_RETURN(slot->work, launcher_.Launch(operation, {send, recv}, purpose));
  return slot;
}

Status HostValues::Relaunch(const Operation& operation, Handle& handle, Purpose purpose) {
  void* data = handle->device->data();
  LOCKSTEP_ASSIGN_OR_RETURN(handle->work, launcher_.Launch(operation, {data, data}, purpose));
  return OkStatus();
}

Status HostValues::ReadBytes(const Handle& handle) {
  LOCKSTEP_RETURN_IF_ERROR(launcher_.Wait(handle->work));
  const EnginePorts& ports = launcher_.ports();
  ports.kernels.Copy(ports.compute, handle->host.data(), handle->device->data(),
                     handle->result_bytes);
  return launcher_.Synchronize();
}

}  // namespace lockstep::ddp
