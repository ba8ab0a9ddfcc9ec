// For tests: a device of the host's whose libraries reach its own memory only, as a GPU's, and a
// library that says when it is given other memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "core/comm/forwarding_communicator.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#include "core/device/native_stream.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {

class OwnMemory final : public device::Device, public device::NativeDevice {
 public:
  std::string_view name() const override { return "own memory"; }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t bytes) override {
    LOCKSTEP_ASSIGN_OR_RETURN(auto buffer, host_.Allocate(bytes));
    std::lock_guard lock(mutex_);
    bytes_[static_cast<const std::byte*>(buffer->data())] = bytes;
    return buffer;
  }
  std::unique_ptr<device::Event> NewEvent() override { return host_.NewEvent(); }
  std::unique_ptr<device::Stream> NewStream() override { return host_.NewStream(); }
  std::unique_ptr<device::Stream> NewInlineStream() override { return host_.NewInlineStream(); }
  Status EnterThread() override { return OkStatus(); }
  Result<device::WordWriter> ShareMemory(std::span<std::byte>) override {
    return Unsupported("it marks nothing");
  }
  // Whether it gave this memory.
  bool Holds(const void* memory) {
    std::lock_guard lock(mutex_);
    const auto* const at = static_cast<const std::byte*>(memory);
    auto after = bytes_.upper_bound(at);
    return after != bytes_.begin() && (--after, at < after->first + after->second);
  }

 private:
  device::host::HostDevice host_;
  std::mutex mutex_;
  std::map<const std::byte*, std::int64_t> bytes_;
};

// Kernels of such a device: copies go both ways, all else works on its memory.
class OwnKernels final : public device::host::HostKernels {
 public:
  explicit OwnKernels(OwnMemory& device) : device_(device) {}
  void Zero(device::Stream& stream, void* to, std::int64_t bytes) override {
    Expect(to, bytes);
    device::host::HostKernels::Zero(stream, to, bytes);
  }
  void Scale(device::Stream& stream, collective::DataType type, void* to, const void* from,
             std::int64_t count, double factor) override {
    Expect(to, count);
    Expect(from, count);
    device::host::HostKernels::Scale(stream, type, to, from, count, factor);
  }
  void Divide(device::Stream& stream, collective::DataType type, void* to, const void* from,
              std::int64_t count, double divisor) override {
    Expect(to, count);
    Expect(from, count);
    device::host::HostKernels::Divide(stream, type, to, from, count, divisor);
  }
  void Convert(device::Stream& stream, collective::DataType to_type, void* to,
               collective::DataType from_type, const void* from, std::int64_t count) override {
    Expect(to, count);
    Expect(from, count);
    device::host::HostKernels::Convert(stream, to_type, to, from_type, from, count);
  }
  void Compute(device::Stream& stream, double ns, const void* memory, std::int64_t bytes) override {
    Expect(memory, bytes);
    device::host::HostKernels::Compute(stream, ns, memory, bytes);
  }

 private:
  void Expect(const void* memory, std::int64_t count) {
    EXPECT_TRUE(count == 0 || device_.Holds(memory)) << "a kernel is given memory of the host's";
  }
  OwnMemory& device_;
};

class OwnMemoryOnly final : public comm::ForwardingCommunicator {
 public:
  OwnMemoryOnly(comm::Communicator& inner, OwnMemory& device)
      : comm::ForwardingCommunicator(inner), device_(device) {}
  Status Enqueue(const collective::Operation& operation, const collective::Buffers& buffers,
                 device::Stream& stream) override {
    for (const void* const memory : {buffers.send, static_cast<const void*>(buffers.recv)}) {
      EXPECT_TRUE(memory == nullptr || device_.Holds(memory)) << collective::Describe(operation);
    }
    return comm::ForwardingCommunicator::Enqueue(operation, buffers, stream);
  }

 private:
  OwnMemory& device_;
};

}  // namespace lockstep::ddp
