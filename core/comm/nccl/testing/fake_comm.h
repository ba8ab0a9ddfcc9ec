// A communicator of the stand-in library.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/nccl/abi.h"
#include "core/comm/nccl/testing/fake_faults.h"
#include "core/comm/nccl/testing/fake_world.h"

namespace lockstep::comm::nccl {

struct FakeOperation {
  std::string call;  // "ncclAllReduce"
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::size_t count = 0;
  int type = 0;
  int reduction = 0;
  int root = 0;
  StandInStream* stream = nullptr;
};

// What is enqueued runs on a thread of the communicator, in order, as on a device.
class FakeComm {
 public:
  // nullptr, with a warning, when the world cannot be reached. In progress until all ranks are
  // there.
  static FakeComm* Make(WorldAddress address, int rank, int size);
  ~FakeComm();
  void End();  // its thread ends once it has done all its work, or was stopped

  int rank() const { return rank_; }
  int size() const { return size_; }

  // What a fault makes of the n-th call of this name: a code to return at once, or kSuccess and
  // perhaps an action for the operation.
  struct Effect {
    Code code = kSuccess;
    std::string action;  // "stuck", "async", "corrupt", or none
    int value = 0;
  };
  Effect OnCall(const std::string& call);

  // `beside`: what was enqueued later does not wait for it.
  void Enqueue(const FakeOperation& operation, const Effect& effect, bool beside = false);
  // Runs beside the caller, after what was enqueued; in progress until then.
  void Begin(std::function<void()> work);
  void Fail(Code code) { error_.store(code); }
  Code state() const;  // what ncclCommGetAsyncError says
  void Stop();         // ends everything that waits
  void Abort();        // the same, and the other ranks learn of it
  FakeWorld& world() { return *world_; }

 private:
  FakeComm(int rank, int size) : rank_(rank), size_(size), faults_(FakeFaultsFromEnvironment()) {}
  void Loop();
  void Push(std::function<void()> work);
  void Run(const FakeOperation& operation, const Effect& effect);
  bool Compute(const FakeOperation& operation);
  bool Reduce(const FakeOperation& operation, bool everywhere);
  bool ReduceScatter(const FakeOperation& operation);
  bool Broadcast(const FakeOperation& operation);
  bool AllGather(const FakeOperation& operation);
  // The elements [begin, end) of all ranks, reduced into `recv` where it is not null.
  bool ReduceChunk(const FakeOperation& operation, const std::byte* send, std::byte* recv,
                   std::size_t elements);
  void AwaitAbort();

  int rank_;
  int size_;
  std::vector<FakeFault> faults_;
  std::map<std::string, int> calls_;
  std::unique_ptr<FakeWorld> world_;
  std::atomic<Code> error_{kSuccess};
  std::atomic<int> begun_{0};   // what Begin was given and is not over
  std::atomic<int> beside_{0};  // what runs on threads of its own
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;  // of calls_ and work_
  std::condition_variable pushed_;
  std::deque<std::function<void()>> work_;
  bool ending_ = false;
  std::thread thread_;
};

// What ncclGetLastError says, and a line in NCCL_DEBUG_FILE.
void FakeWarn(const std::string& text);
const char* FakeLastError();

}  // namespace lockstep::comm::nccl
