// What a library needs that puts work on a device's streams by itself, by their handles.
#ifndef LOCKSTEP_CORE_DEVICE_NATIVE_STREAM_H_
#define LOCKSTEP_CORE_DEVICE_NATIVE_STREAM_H_

#include <functional>

#include "core/base/status.h"

namespace lockstep {

// A Stream is one beside (dynamic_cast) where its device has handles: CUDA's.
class NativeStream {
 public:
  using Launch = std::function<Status(void* handle)>;
  virtual ~NativeStream() = default;
  // Calls `launch` at once, on the calling thread, with the handle (a cudaStream_t): what it
  // enqueues there runs in the order of this stream. A sick stream launches nothing. The stream is
  // not made sick by an error of `launch`, which is returned.
  virtual Status LaunchOn(const Launch& launch) = 0;
};

// A Device is one beside where threads that call its libraries must be told which device it is.
class NativeDevice {
 public:
  virtual ~NativeDevice() = default;
  virtual Status EnterThread() = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_DEVICE_NATIVE_STREAM_H_
