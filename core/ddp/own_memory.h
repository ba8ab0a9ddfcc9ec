// For tests: a device of the host's whose libraries reach its own memory only, as a GPU's, and a
// library that says when it is given other memory.
#ifndef LOCKSTEP_CORE_DDP_OWN_MEMORY_H_
#define LOCKSTEP_CORE_DDP_OWN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "core/comm/communicator.h"
#include "core/device/host/host_device.h"
#include "core/device/native_stream.h"
#include "gtest/gtest.h"

namespace lockstep {

class OwnMemory final : public Device, public NativeDevice {
 public:
  std::string_view name() const override { return "own memory"; }
  Result<std::unique_ptr<Buffer>> Allocate(std::int64_t bytes) override {
    LOCKSTEP_ASSIGN_OR_RETURN(auto buffer, host_.Allocate(bytes));
    std::lock_guard lock(mutex_);
    bytes_[static_cast<const std::byte*>(buffer->data())] = bytes;
    return buffer;
  }
  std::unique_ptr<Event> NewEvent() override { return host_.NewEvent(); }
  std::unique_ptr<Stream> NewStream() override { return host_.NewStream(); }
  std::unique_ptr<Stream> NewInlineStream() override { return host_.NewInlineStream(); }
  Status EnterThread() override { return OkStatus(); }
  Result<WordWriter> ShareMemory(std::span<std::byte>) override {
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
  HostDevice host_;
  std::mutex mutex_;
  std::map<const std::byte*, std::int64_t> bytes_;
};

class OwnMemoryOnly final : public Communicator {
 public:
  OwnMemoryOnly(Communicator& inner, OwnMemory& device) : inner_(inner), device_(device) {}
  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Status Enqueue(const Operation& operation, const Buffers& buffers, Stream& stream) override {
    for (const void* const memory : {buffers.send, static_cast<const void*>(buffers.recv)}) {
      EXPECT_TRUE(memory == nullptr || device_.Holds(memory)) << Describe(operation);
    }
    return inner_.Enqueue(operation, buffers, stream);
  }
  Status Await(Stream& stream, Deadline deadline) override {
    return inner_.Await(stream, deadline);
  }
  void Abort() override { inner_.Abort(); }
  Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    return inner_.Split(color, key, deadline);
  }

 private:
  Communicator& inner_;
  OwnMemory& device_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_DDP_OWN_MEMORY_H_
