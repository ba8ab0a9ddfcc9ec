// A call that may never return, and who notices.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/comm/nccl/abi.h"

namespace lockstep::comm::nccl {

// Makes the call on a thread of its own and waits for it until the deadline; nothing when it is
// still inside then: its thread stays behind, and what the call refers to must be owned by it. A
// process with such a thread ends with _exit. kSystemFailed when there is no thread to be had: the
// call was not made.
Result<std::optional<Code>> CallBounded(std::function<Code()> call, Deadline deadline);

// Calls that are too frequent for a thread of their own are made by the caller, in view of one
// thread of the process, which looks ten times a second. One caller at a time.
class WatchedCalls {
 public:
  struct Limits {
    double call_seconds = 1800;  // then `rescue` is called
    double rescue_seconds = 10;  // after that, still inside: `give_up` is
  };
  // Starts the watching thread, which there has to be before there is anything to watch.
  static Status StartWatching();
  // Both are called by the watching thread.
  WatchedCalls(Limits limits, std::function<void()> rescue, std::function<void()> give_up);
  ~WatchedCalls();
  WatchedCalls(const WatchedCalls&) = delete;
  WatchedCalls& operator=(const WatchedCalls&) = delete;

  void Enter();
  // Whether it took so long that rescue was called.
  bool Leave();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace lockstep::comm::nccl
