// Streams, events and graphs of CUDA. A stream that has to wait for an event that nobody recorded
// yet waits for a word in memory. The host never blocks inside CUDA: it asks and sleeps between the
// questions. A stream that never drains is left behind, because destroying it might block.
#include "core/device/cuda/cuda_stream.h"

#include <chrono>
#include <thread>
#include <typeinfo>
#include <utility>

#include "core/base/check.h"
#include "core/device/cuda/cuda_call.h"
#include "core/device/cuda/stream_memory.h"

namespace lockstep::device::cuda {
namespace {

constexpr double kPatienceSeconds = 10;
constexpr double kLongestInlineWaitSeconds = 24.0 * 3600;
constexpr int kSpins = 2000;  // about a millisecond of questions before a waiter sleeps between
constexpr auto kNap = std::chrono::microseconds(50);

class CudaGraph final : public StreamGraph {
 public:
  explicit CudaGraph(cudaGraphExec_t graph) : graph_(graph) {}
  ~CudaGraph() override { cudaGraphExecDestroy(graph_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  Status LaunchOn(void* handle) override {
    return CudaStatus("cudaGraphLaunch",
                      cudaGraphLaunch(graph_, static_cast<cudaStream_t>(handle)));
  }

 private:
  cudaGraphExec_t graph_;
};

class CudaPoint final : public StreamPoint {
 public:
  CudaPoint() = default;
  ~CudaPoint() override {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  CudaPoint(const CudaPoint&) = delete;
  CudaPoint& operator=(const CudaPoint&) = delete;
  // Asked of an event of a capture, CUDA would give an error and end the capture: nobody asks.
  bool Reached() const override { return cudaEventQuery(event_) != cudaErrorNotReady; }
  Status RecordOn(cudaStream_t stream) {
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags, &event_, cudaEventDisableTiming);
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaEventRecord, event_, stream);
    return OkStatus();
  }
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

bool Written(const Signal& signal) {
  return std::atomic_ref<std::uint32_t>(*signal.word).load(std::memory_order_acquire) ==
         signal.turn;
}

}  // namespace

Signal Signals::Take() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty() && Written(free_.front())) {
      Signal signal = free_.front();
      free_.pop_front();
      ++signal.turn;
      return signal;
    }
  }
  Signal signal;
  signal.turn = 1;
  signal.made = CudaStatus("cudaEventCreate",
                           cudaEventCreateWithFlags(&signal.event, cudaEventDisableTiming));
  if (!signal.made.ok()) return signal;
  signal.made = CudaStatus("cudaHostAlloc",
                           cudaHostAlloc(&signal.word, sizeof(*signal.word), cudaHostAllocMapped));
  if (signal.made.ok()) *signal.word = 0;
  return signal;
}

void Signals::Give(const Signal& signal, bool recorded) {
  if (!signal.made.ok()) return;
  std::lock_guard lock(mutex_);
  free_.push_back(signal);
  if (!recorded) --free_.back().turn;  // nobody writes it
}

void Signals::Clear() {
  std::lock_guard lock(mutex_);
  for (const Signal& signal : free_) {
    if (!Written(signal)) continue;
    cudaEventDestroy(signal.event);
    cudaFreeHost(signal.word);
  }
  free_.clear();
}

CudaEvent::Turn::Turn(std::shared_ptr<Signals> its_signals)
    : signals(std::move(its_signals)), signal(signals->Take()) {}

CudaEvent::Turn::~Turn() { signals->Give(signal, recorded.load()); }

CudaEvent::CudaEvent(std::shared_ptr<Signals> signals)
    : signals_(std::move(signals)), turn_(std::make_shared<Turn>(signals_)) {}

CudaEvent::~CudaEvent() = default;

void CudaEvent::Reset() {
  turn_->latch.CheckMayReset();
  turn_ = std::make_shared<Turn>(signals_);
}

struct CudaStream::State {
  mutable std::mutex mutex;
  Status first;  // error

  Status Get() const {
    std::lock_guard lock(mutex);
    return first;
  }
  void Fail(const Status& status) {
    std::lock_guard lock(mutex);
    if (first.ok()) first = status;
  }
};

// What a host function gets.
struct CudaStream::Item {
  Work work;
  bool always;
  std::shared_ptr<State> state;

  static void CUDART_CB Run(void* pointer) {
    const std::unique_ptr<Item> item(static_cast<Item*>(pointer));
    if (!item->always && !item->state->Get().ok()) return;
    const Status status = item->work();
    if (!status.ok()) item->state->Fail(status);
  }
};

CudaStream::CudaStream(int device, bool inline_execution)
    : device_(device), inline_(inline_execution), state_(std::make_shared<State>()) {
  Fail(CudaStatus("cudaSetDevice", cudaSetDevice(device_)));
  Fail(CudaStatus("cudaStreamCreate", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)));
}

CudaStream::~CudaStream() {
  if (stream_ == nullptr) return;
  // One that never drains is left to the end of the process: destroying it might wait.
  if (Synchronize(Deadline::AfterSeconds(kPatienceSeconds)).code() ==
      StatusCode::kDeadlineExceeded) {
    return;
  }
  cudaStreamDestroy(stream_);
}

void CudaStream::Fail(const Status& status) {
  if (!status.ok()) state_->Fail(status);
}

Status CudaStream::status() const { return state_->Get(); }

void CudaStream::EnqueueHost(Work work, bool always) {
  auto item = std::make_unique<Item>(Item{std::move(work), always, state_});
  const Status status =
      CudaStatus("cudaLaunchHostFunc", cudaLaunchHostFunc(stream_, &Item::Run, item.get()));
  if (!status.ok()) return Fail(status);
  static_cast<void>(item.release());  // Run owns it
}

void CudaStream::Enqueue(Work work) {
  if (!inline_) return EnqueueHost(std::move(work), /*always=*/false);
  if (!Synchronize(Deadline::AfterSeconds(kLongestInlineWaitSeconds)).ok()) return;
  Fail(work());
}

void CudaStream::Record(Event& event) {
  LOCKSTEP_CHECK(typeid(event) == typeid(CudaEvent), "an event of another device");
  const std::shared_ptr<CudaEvent::Turn> turn = static_cast<CudaEvent&>(event).turn_;
  Fail(turn->signal.made);
  turn->latch.Promise();
  // The latch first, so that whoever passes the event finds it settled.
  EnqueueHost(
      [turn, state = state_] {
        turn->latch.Settle(state->Get());
        return OkStatus();
      },
      /*always=*/true);
  Fail(CudaStatus("cudaEventRecord", cudaEventRecord(turn->signal.event, stream_)));
  Fail(StreamWrite32(stream_, turn->signal.word, turn->signal.turn));
  turn->recorded.store(true);
}

void CudaStream::WaitFor(Event& event) {
  LOCKSTEP_CHECK(typeid(event) == typeid(CudaEvent), "an event of another device");
  const std::shared_ptr<CudaEvent::Turn> turn = static_cast<CudaEvent&>(event).turn_;
  const Signal& signal = turn->signal;
  Fail(signal.made);
  if (turn->recorded.load()) {
    Fail(CudaStatus("cudaStreamWaitEvent", cudaStreamWaitEvent(stream_, signal.event, 0)));
  } else {
    Fail(StreamWaitAtLeast32(stream_, signal.word, signal.turn));
  }
  // The error of the stream that was waited for becomes this one's.
  EnqueueHost([turn] { return turn->latch.Await(Deadline::AfterSeconds(0)); }, /*always=*/false);
}

Status CudaStream::Synchronize(Deadline deadline) {
  for (int spins = 0;; ++spins) {
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state != cudaErrorNotReady) {
      Fail(CudaStatus("cudaStreamQuery", state));
      return status();
    }
    if (deadline.Passed()) {
      return DeadlineExceeded("the stream's work was not done before the deadline");
    }
    if (spins < kSpins) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

Status CudaStream::LaunchOn(const Launch& launch) {
  LOCKSTEP_RETURN_IF_ERROR(status());
  LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaSetDevice, device_);
  return launch(stream_);
}

// Thread-local: NCCL's threads, and ours that end a communicator, may call meanwhile what a capture
// of this thread forbids. NCCL's guide asks for "relaxed" only for a first send or receive.
Result<std::unique_ptr<StreamGraph>> CudaStream::Capture(const Launch& launch) {
  LOCKSTEP_RETURN_IF_ERROR(status());
  LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaSetDevice, device_);
  LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture, stream_, cudaStreamCaptureModeThreadLocal);
  Status status = launch(stream_);
  cudaGraph_t graph = nullptr;
  // Also of a capture that went wrong: the stream would stay unusable.
  const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
  if (status.ok()) status = CudaStatus("cudaStreamEndCapture", ended);
  cudaGraphExec_t instance = nullptr;
  if (status.ok()) {
    status = CudaStatus("cudaGraphInstantiate", cudaGraphInstantiateWithFlags(&instance, graph, 0));
  }
  if (graph != nullptr) cudaGraphDestroy(graph);
  static_cast<void>(cudaGetLastError());  // is told by `status`, and nobody else's
  LOCKSTEP_RETURN_IF_ERROR(status);
  return std::unique_ptr<StreamGraph>(std::make_unique<CudaGraph>(instance));
}

Result<std::unique_ptr<StreamPoint>> CudaStream::Mark() {
  LOCKSTEP_RETURN_IF_ERROR(status());
  auto point = std::make_unique<CudaPoint>();
  LOCKSTEP_RETURN_IF_ERROR(point->RecordOn(stream_));
  return std::unique_ptr<StreamPoint>(std::move(point));
}

Status CudaStream::After(const StreamPoint& point) {
  LOCKSTEP_CHECK(typeid(point) == typeid(CudaPoint), "a point of another device");
  LOCKSTEP_RETURN_IF_ERROR(status());
  const auto& of = static_cast<const CudaPoint&>(point);
  LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent, stream_, of.event(), 0);
  return OkStatus();
}

Status CudaStream::WriteWord(std::uint64_t* word, std::uint64_t value) {
  LOCKSTEP_RETURN_IF_ERROR(status());
  return StreamWrite64(stream_, word, value);
}

Status CudaStream::IncrementWord(std::uint64_t* word) {
  LOCKSTEP_RETURN_IF_ERROR(status());
  return StreamIncrement64(stream_, word);
}

}  // namespace lockstep::device::cuda
