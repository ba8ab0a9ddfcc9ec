// On a stream with a handle the device captures, and what cannot be captured is refused before the
// driver sees it. Elsewhere the work is kept as functions.
#include "core/comm/keep_graph.h"

#include "core/comm/work_graph.h"

namespace lockstep::comm {
namespace {

// A stream with a handle while what is enqueued on it is captured. What a backend sees of it: only
// launches can be captured. Anything else fails it, and so the capture; the stream itself
// must not be asked for anything meanwhile.
class CapturingStream final : public device::Stream, public device::NativeStream {
 public:
  // `native` is captured, and `handle` its own.
  CapturingStream(device::NativeStream& native, void* handle) : native_(native), handle_(handle) {}

  bool inline_execution() const override { return false; }
  void Enqueue(Work) override { Refuse("work of the host"); }
  void Record(device::Event&) override { Refuse("an event"); }
  void WaitFor(device::Event&) override { Refuse("a wait for an event"); }
  Status Synchronize(Deadline) override {
    Refuse("a synchronization");
    return status_;
  }
  Status status() const override { return status_; }
  Status LaunchOn(const Launch& launch) override {
    LOCKSTEP_RETURN_IF_ERROR(status_);
    return launch(handle_);
  }
  Result<std::unique_ptr<device::StreamGraph>> Capture(const Launch&) override {
    return Unsupported("a graph cannot be captured within another");
  }
  Status WriteWord(std::uint64_t*, std::uint64_t) override {
    return Unsupported("a word that a graph writes would be the same in every replay");
  }
  Status IncrementWord(std::uint64_t* word) override { return native_.IncrementWord(word); }

 private:
  void Refuse(const char* what) {
    if (status_.ok()) status_ = Unsupported(std::string("a graph cannot hold ") + what);
  }

  device::NativeStream& native_;
  void* handle_;
  Status status_;
};

}  // namespace

Result<std::unique_ptr<device::StreamGraph>> KeepGraph(
    device::Stream& stream, const std::function<Status(device::Stream&)>& program) {
  if (auto* const native = dynamic_cast<device::NativeStream*>(&stream)) {
    return native->Capture([&](void* handle) -> Status {
      CapturingStream capturing(*native, handle);
      LOCKSTEP_RETURN_IF_ERROR(program(capturing));
      return capturing.status();
    });
  }
  auto graph = std::make_unique<WorkGraph>();
  KeepingStream keeping(*graph, 0);
  LOCKSTEP_RETURN_IF_ERROR(program(keeping));
  LOCKSTEP_RETURN_IF_ERROR(keeping.status());
  return graph;
}

}  // namespace lockstep::comm
