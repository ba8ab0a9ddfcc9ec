// What a library needs that puts work on a device's streams by itself, by their handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/base/status.h"
#include "core/device/device.h"

namespace lockstep::device {

// Work that was kept instead of being run, to be run again and again: a CUDA graph.
class StreamGraph {
 public:
  virtual ~StreamGraph() = default;
  // Enqueues all of it by a stream's handle, of the device that it was captured on.
  virtual Status LaunchOn(void* handle) = 0;
};

// A point in a stream's order, for other streams to come after. May go once they were told.
class StreamPoint {
 public:
  virtual ~StreamPoint() = default;
  virtual bool Reached() const = 0;  // false in a capture; true when the stream failed
};

// A Stream is one beside (dynamic_cast) where its device has handles: CUDA's.
class NativeStream {
 public:
  using Launch = std::function<Status(void* handle)>;
  virtual ~NativeStream() = default;
  // Calls `launch` at once, on the calling thread, with the handle (a cudaStream_t): what it
  // enqueues there runs in the order of this stream. A failed stream launches nothing. The stream
  // is not failed by an error of `launch`, which is returned.
  virtual Status LaunchOn(const Launch& launch) = 0;
  // Calls `launch` as LaunchOn does, but what it enqueues is kept and does not run. The memory that
  // it works on must stay where it is as long as the graph lives, and meanwhile nobody may use the
  // stream or ask for its state. An error of `launch` is returned, and the stream goes on as
  // before. Another stream that comes after a point of this one within `launch` is captured with it
  // from there on; this one must come after the last of its work before `launch` returns.
  virtual Result<std::unique_ptr<StreamGraph>> Capture(const Launch& launch) = 0;
  // A point behind all that was launched so far, without work of the host's.
  virtual Result<std::unique_ptr<StreamPoint>> Mark() {
    return Unsupported("this stream has no points to come after");
  }
  // What is launched from now on comes after the point, which is of a stream of the same device.
  virtual Status After(const StreamPoint& point) {
    static_cast<void>(point);
    return Unsupported("this stream cannot come after a point");
  }
  // Has the device write a word of the memory that it shares, in the order of this stream.
  virtual Status WriteWord(std::uint64_t* word, std::uint64_t value) = 0;
  // Has it add one to such a word whenever it gets there: also in a capture, and then each replay.
  virtual Status IncrementWord(std::uint64_t* word) {
    static_cast<void>(word);
    return Unsupported("this stream cannot count in a word");
  }
  // The stream without what decorates it: for work that runs later than it is launched.
  virtual NativeStream& Bare() { return *this; }
};

// How a device writes a word: by operations of its driver, or by a kernel of one thread.
enum class WordWriter { kStreamOperations, kKernel };

// A Device is one beside where threads that call its libraries must be told which device it is.
class NativeDevice {
 public:
  virtual ~NativeDevice() = default;
  virtual Status EnterThread() = 0;
  // Memory that stays on the device: Device::Allocate's may be such that others displace it.
  virtual Result<std::unique_ptr<Buffer>> AllocateOnDevice(std::int64_t bytes) {
    return Unsupported("this device has no memory of its own: {} bytes", bytes);
  }
  virtual int ComputeCapability() const { return 0; }  // 90: of 9.0; 0: unknown
  // From now on streams may write words of `memory`: whole pages, which outlive the device.
  // kUnsupported where the device reaches the host's memory by other addresses only.
  virtual Result<WordWriter> ShareMemory(std::span<std::byte> memory) = 0;
};

}  // namespace lockstep::device
