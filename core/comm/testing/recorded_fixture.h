// Test material: a recorded communicator over a probe, which sees what happens around each call of
// the library and fails on demand; and what the journal said.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/comm/null/null_communicator.h"
#include "core/comm/recorded.h"
#include "core/device/host/host_device.h"
#include "core/device/native_stream.h"
#include "core/journal/journal.h"
#include "gtest/gtest.h"

namespace lockstep::comm {

inline constexpr std::size_t kCapacity = 1024;

class ProbeCommunicator final : public Communicator {
 public:
  struct Script {
    std::vector<Ticks> called_at;
    std::function<void()> during;  // a call
    int fail_at = -1;              // the how manieth call fails
    Status refuse;                 // instead of enqueuing
    Status await;
    Status refuse_split;
    device::Event* launch_waits_for = nullptr;  // on streams with handles
  };
  explicit ProbeCommunicator(Script& script) : script_(script) {}

  const Capabilities& capabilities() const override { return null::NullCapabilities(); }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status Enqueue(const collective::Operation&, const collective::Buffers&,
                 device::Stream& stream) override {
    LOCKSTEP_RETURN_IF_ERROR(script_.refuse);
    if (auto* const native = dynamic_cast<device::NativeStream*>(&stream)) {
      return native->LaunchOn([this](void* handle) {
        auto& fifo = *static_cast<device::Stream*>(handle);
        if (script_.launch_waits_for != nullptr) fifo.WaitFor(*script_.launch_waits_for);
        fifo.Enqueue([this] { return Run(); });
        return OkStatus();
      });
    }
    stream.Enqueue([this] { return Run(); });
    return stream.inline_execution() ? stream.status() : OkStatus();
  }
  Status Await(device::Stream& stream, Deadline deadline) override {
    LOCKSTEP_RETURN_IF_ERROR(stream.Synchronize(deadline));
    return script_.await;
  }
  Status Abort() override { return OkStatus(); }
  Result<std::unique_ptr<Communicator>> Split(int color, int, Deadline) override {
    LOCKSTEP_RETURN_IF_ERROR(script_.refuse_split);
    if (color < 0) return std::unique_ptr<Communicator>();
    return std::unique_ptr<Communicator>(std::make_unique<ProbeCommunicator>(script_));
  }

 private:
  Status Run() {
    script_.called_at.push_back(NowTicks());
    if (script_.during) script_.during();
    const bool fails = static_cast<int>(script_.called_at.size()) - 1 == script_.fail_at;
    return fails ? SystemFailed("the cable is out") : OkStatus();
  }

  Script& script_;
};

class RecordedTest : public testing::Test {
 protected:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  std::vector<journal::JournalEvent> Events() const {
    return journal::JournalReader(std::as_bytes(std::span(memory_)), kCapacity)
        .Newest(kCapacity)
        .events;
  }
  std::string Kinds() const {
    std::string kinds;
    for (const journal::JournalEvent& event : Events()) {
      const char letter = event.kind == journal::EventKind::kEnqueue ? 'q'
                          : event.kind == journal::EventKind::kStart ? 's'
                          : event.kind == journal::EventKind::kEnd   ? 'e'
                          : event.kind == journal::EventKind::kError ? 'x'
                                                                     : '?';
      kinds += letter;
    }
    return kinds;
  }
  static collective::Operation AllReduce(
      collective::Blocking blocking = collective::Blocking::kBlocking) {
    collective::Operation operation;
    operation.count = 25;
    operation.blocking = blocking;
    return operation;
  }
  Status Enqueue(const collective::Operation& operation, device::Stream& stream) {
    return recorded_.Enqueue(operation, {buffer_, buffer_}, stream);
  }
  static Deadline Soon() { return Deadline::AfterSeconds(20); }

  std::vector<Line> memory_ =
      std::vector<Line>(journal::JournalBytes(kCapacity) / sizeof(Line) + 1);
  journal::JournalWriter journal_ =
      journal::JournalWriter::Create(std::as_writable_bytes(std::span(memory_)), kCapacity);
  ProbeCommunicator::Script script_;
  RecordedCommunicator recorded_{std::make_unique<ProbeCommunicator>(script_), journal_, 7};
  std::unique_ptr<device::Stream> inline_ = device::host::HostDevice().NewInlineStream();
  std::unique_ptr<device::Stream> fifo_ = device::host::HostDevice().NewStream();
  float buffer_[64] = {};
};

}  // namespace lockstep::comm
