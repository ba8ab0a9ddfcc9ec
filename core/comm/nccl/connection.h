// One ncclComm_t: made, watched and ended without ever waiting beyond a deadline.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/comm/nccl/abi.h"
#include "core/comm/nccl/library.h"

namespace lockstep::comm::nccl {

// Calls that may never return, and who notices. This one makes the call on a thread of its own and
// waits for it until the deadline; nothing when it is still inside then: its thread stays behind,
// and what the call refers to must be owned by it. A process with such a thread ends with _exit.
// kSystemFailed when there is no thread to be had: the call was not made. `enter`: what the thread
// does before it calls; may be empty.
Result<std::optional<Code>> CallBounded(std::function<Code()> call, Deadline deadline,
                                        std::function<Status()> enter = nullptr);

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

// Of a communicator and its children.
struct Terms {
  std::shared_ptr<const Library> library;
  double operation_seconds = 1800;  // of a call, or of an operation on an inline stream
  double abort_seconds = 10;
  double finalize_seconds = 10;
  std::function<Status()> enter_thread;  // what a thread does before it calls; may be empty
  // True: nobody wants the communicator any more that is being made; may be empty. Asked while the
  // library says "in progress", which without the others it would say until the deadline.
  std::function<bool()> given_up;
  // Called when a call did not come back even after the abort; does not return.
  std::function<void(const std::string& why)> last_resort;
};

// Errors of the library are kSystemFailed: which call, NCCL's words, and the end of its log. After
// the first one nothing but Abort is called any more, and every call gives that error: NCCL says
// that errors are fatal for a communicator. Calls are serialised, since NCCL forbids an abort while
// another thread is inside; an abort waits for that only briefly.
class Connection {
 public:
  using Call = std::function<Code(Comm comm)>;

  // Collective. kDeadlineExceeded when not all ranks came, or when a call did not return.
  static Result<std::shared_ptr<Connection>> Connect(const Terms& terms, const UniqueId& id,
                                                     int rank, int size, Deadline deadline);
  // As Close, with finalize_seconds; an error goes to standard error.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Library& library() const { return *terms_.library; }
  const Terms& terms() const { return terms_; }

  // Makes a call and, while the library says "in progress", asks until it is through. `name` is
  // NCCL's, a literal.
  Status Make(const char* name, const Call& call);
  // What the library found since: OK, or the error that ended the communicator.
  Status Poll();
  // The same without asking it: of what has just ended whether it may have been ended by an abort.
  Status Health() const;
  // Collective; nullptr where `color` is negative.
  Result<std::shared_ptr<Connection>> Split(int color, int key, Deadline deadline);
  // Of the ranks that are not excluded, on each of them; `abort` ends pending operations first, and
  // this communicator with them.
  Result<std::shared_ptr<Connection>> Shrink(std::span<const int> excluded, bool abort,
                                             Deadline deadline);
  // Stops what is in flight; what may follow is Split, Shrink or the end.
  Status Revoke(Deadline deadline);
  // Ends it at once. Not OK when even that did not return: the process must be ended then.
  Status Abort();
  // Ends it as a program does that is done: finalize, destroy. Aborts when that fails.
  Status Close();
  bool aborted() const { return aborted_.load(); }

 private:
  Connection(Terms terms, Comm comm, int rank, int size);

  // A child's handle is written by a thread that may stay behind.
  using MakeChild = std::function<Code(Comm comm, Comm* child, Config* config)>;
  Result<std::shared_ptr<Connection>> Child(const char* name, bool parent_settles,
                                            MakeChild make_child, Deadline deadline);
  Result<std::shared_ptr<Connection>> Adopt(const char* name, Comm child, Deadline deadline);
  Status MakeBounded(const char* name, std::function<Code()> call, Deadline deadline);
  // Asks until `comm` is through with what it does beside the caller.
  Status Settle(const char* name, Comm comm, Deadline deadline);
  // What the library itself says of `comm`, in `state`.
  Status AskState(Comm comm, Code& state);
  Status Finalize(Deadline deadline);
  Status Fail(std::string_view call, Code code);
  Status FailWith(Status status);
  Status FailLate(std::string_view call);
  Status failure() const;

  Terms terms_;
  Comm comm_;
  int rank_;
  int size_;
  std::mutex calling_;
  std::atomic<bool> aborted_{false};
  std::atomic<const char*> inside_{""};  // the name of the last call, for the watcher
  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  Status failure_;  // the first
  bool closed_ = false;
  std::atomic<bool> revoked_{false};
  bool destroying_ = false;  // its handle is the library's to free
  WatchedCalls watched_;
};

}  // namespace lockstep::comm::nccl
