// A communicator for programs whose buffers the device can't reach: each operation works on memory
// of the device, between two copies that run in the order of the stream.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "core/comm/forwarding_communicator.h"

namespace lockstep::comm::nccl {

// `device` has memory that the host can read and write, and outlives the communicator.
class StagedCommunicator final : public ForwardingCommunicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> inner, device::Device& device)
      : ForwardingCommunicator(std::move(inner)), device_(device) {}

  Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    LOCKSTEP_ASSIGN_OR_RETURN(auto child, inner().Split(color, key, deadline));
    if (child == nullptr) return std::unique_ptr<Communicator>();
    return std::unique_ptr<Communicator>(
        std::make_unique<StagedCommunicator>(std::move(child), device_));
  }

  Status Enqueue(const collective::Operation& operation, const collective::Buffers& buffers,
                 device::Stream& stream) override {
    LOCKSTEP_RETURN_IF_ERROR(ValidateCall(operation, buffers, rank(), size()));
    LOCKSTEP_RETURN_IF_ERROR(stream.status());
    LOCKSTEP_ASSIGN_OR_RETURN(Staged send,
                              Stage(buffers.send, collective::SendBytes(operation, size())));
    LOCKSTEP_ASSIGN_OR_RETURN(Staged recv,
                              Stage(buffers.recv, collective::RecvBytes(operation, size())));
    Copy(stream, send, buffers.send, /*in=*/true);
    Copy(stream, recv, buffers.recv, /*in=*/true);  // what nobody writes stays as it was
    const collective::Buffers staged{send.memory ? send.memory->data() : nullptr,
                                     recv.memory ? recv.memory->data() : nullptr};
    LOCKSTEP_RETURN_IF_ERROR(inner().Enqueue(operation, staged, stream));
    Copy(stream, recv, buffers.recv, /*in=*/false);
    // Keeps what was sent until the stream got past it.
    stream.Enqueue([send] { return OkStatus(); });
    return stream.inline_execution() ? stream.status() : OkStatus();
  }

 private:
  struct Staged {
    std::shared_ptr<device::Buffer> memory;
    std::size_t bytes = 0;
  };

  Result<Staged> Stage(const void* theirs, std::int64_t bytes) {
    if (theirs == nullptr) return Staged{};
    LOCKSTEP_ASSIGN_OR_RETURN(auto memory, device_.Allocate(bytes > 0 ? bytes : 1));
    return Staged{std::move(memory), static_cast<std::size_t>(bytes)};
  }

  static void Copy(device::Stream& stream, const Staged& staged, const void* theirs, bool in) {
    if (staged.memory == nullptr || staged.bytes == 0) return;
    stream.Enqueue([staged, theirs = const_cast<void*>(theirs), in] {
      void* const to = in ? staged.memory->data() : theirs;
      std::memcpy(to, in ? theirs : staged.memory->data(), staged.bytes);
      return OkStatus();
    });
  }

  std::unique_ptr<Communicator> inner_;
  device::Device& device_;
};

}  // namespace lockstep::comm::nccl
