// The stand-in library's communicator: a thread that runs what was enqueued, in order. Data moves
// through the shared memory of fake_world.h, in chunks. LOCKSTEP_FAKE_NCCL names calls and what
// becomes of them: an error, a later error, or no end.
#include "core/comm/nccl/testing/fake_comm.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "core/comm/nccl/pause.h"
#include "core/comm/nccl/testing/fake_reduce.h"

namespace lockstep::comm::nccl {
namespace {

std::mutex last_error_mutex;
char last_error[256] = "";

// The same for calls of one name.
std::uint32_t KindOf(const FakeOperation& operation) {
  std::uint32_t kind = 0;
  for (const char letter : operation.call) kind = kind * 31 + static_cast<unsigned char>(letter);
  return kind;
}

}  // namespace

void FakeWarn(const std::string& text) {
  std::lock_guard lock(last_error_mutex);
  std::strncpy(last_error, text.c_str(), sizeof(last_error) - 1);
  if (const char* path = std::getenv("NCCL_DEBUG_FILE")) {
    std::ofstream(path, std::ios::app) << "fake:0:0 [0] NCCL WARN " << text << "\n";
  }
}

const char* FakeLastError() { return last_error; }

FakeComm* FakeComm::Make(WorldAddress address, int rank, int size) {
  std::unique_ptr<FakeComm> comm(new FakeComm(rank, size));
  comm->world_ =
      FakeWorld::Open(address, rank, size, [self = comm.get()] { return self->aborted_.load(); });
  if (comm->world_ == nullptr) {
    FakeWarn(std::string("fake: connecting failed: ") + std::strerror(errno));
    return nullptr;
  }
  try {
    comm->thread_ = std::thread([self = comm.get()] { self->Loop(); });
  } catch (const std::system_error& error) {
    FakeWarn("fake: no thread: " + error.code().message());
    return nullptr;
  }
  comm->Begin([self = comm.get()] { static_cast<void>(self->world_->AwaitAll()); });
  return comm.release();
}

FakeComm::~FakeComm() { End(); }

void FakeComm::End() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  pushed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (Pause pause; beside_.load() > 0;) pause();
}

void FakeComm::Loop() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      pushed_.wait(lock, [this] { return ending_ || !work_.empty(); });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

void FakeComm::Push(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  pushed_.notify_all();
}

void FakeComm::Begin(std::function<void()> work) {
  begun_.fetch_add(1);
  Push([this, work = std::move(work)] {
    work();
    begun_.fetch_sub(1);
  });
}

Code FakeComm::state() const {
  if (error_.load() != kSuccess) return error_.load();
  if (world_->broken()) return kRemoteError;
  return begun_.load() > 0 ? kInProgress : kSuccess;
}

void FakeComm::AwaitAbort() {
  for (Pause pause; !aborted_.load();) pause();
}

FakeComm::Effect FakeComm::OnCall(const std::string& call) {
  int nth = 0;
  {
    std::lock_guard lock(mutex_);
    nth = ++calls_[call];
  }
  for (const FakeFault& fault : faults_) {
    if (fault.call != call || (fault.nth != 0 && fault.nth != nth)) continue;
    if (fault.rank >= 0 && fault.rank != rank_) continue;
    FakeWarn("fake: " + call + " " + fault.action);
    if (fault.action == "error") return {fault.value, "", 0};
    if (fault.action == "kill") raise(SIGKILL);
    if (fault.action == "freeze") {
      for (Pause pause;;) pause();
    }
    if (fault.action == "hang") {
      AwaitAbort();
      return {kInternalError, "", 0};
    }
    if (fault.action == "progress") {
      Begin([this] { AwaitAbort(); });
      return {kInProgress, "", 0};
    }
    if (fault.action == "slow") {
      Begin([ms = fault.value] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); });
      return {kSuccess, "slow", 0};
    }
    return {kSuccess, fault.action, fault.value};
  }
  return {};
}

void FakeComm::Enqueue(const FakeOperation& operation, const Effect& effect, bool beside) {
  operation.stream->unfinished.fetch_add(1);
  const auto run = [this, operation, effect] {
    Run(operation, effect);
    operation.stream->unfinished.fetch_sub(1);
  };
  if (!beside) return Push(run);
  beside_.fetch_add(1);
  Push([this, run] {
    std::thread([this, run] {
      run();
      beside_.fetch_sub(1);
    }).detach();
  });
}

void FakeComm::Run(const FakeOperation& operation, const Effect& effect) {
  if (aborted_.load()) return;
  if (effect.action == "async") error_.store(effect.value);
  if (effect.action == "async" || effect.action == "stuck") return AwaitAbort();
  if (!Compute(operation)) return;
  if (effect.action == "corrupt" && operation.count > 0) operation.recv[0] ^= std::byte{1};
}

bool FakeComm::Compute(const FakeOperation& operation) {
  const std::size_t bytes = operation.count * BytesOfType(operation.type);
  if (operation.call == "ncclAllReduce") return Reduce(operation, true);
  if (operation.call == "ncclReduce") return Reduce(operation, false);
  if (operation.call == "ncclReduceScatter") return ReduceScatter(operation);
  if (operation.call == "ncclBroadcast") return Broadcast(operation);
  if (operation.call == "ncclAllGather") return AllGather(operation);
  if (operation.call == "ncclSend") return world_->Send(operation.root, operation.send, bytes);
  return world_->Receive(operation.root, operation.recv, bytes);
}

bool FakeComm::ReduceChunk(const FakeOperation& operation, const std::byte* send, std::byte* recv,
                           std::size_t elements) {
  const std::size_t bytes = elements * BytesOfType(operation.type);
  std::memcpy(world_->Slot(rank_), send, bytes);
  if (!world_->Meet(KindOf(operation))) return false;
  if (recv != nullptr) {
    std::memcpy(recv, world_->Slot(0), bytes);
    for (int peer = 1; peer < size_; ++peer) {
      ReduceInto(recv, world_->Slot(peer), elements, operation.type, operation.reduction);
    }
  }
  return world_->Barrier();
}

bool FakeComm::Reduce(const FakeOperation& operation, bool everywhere) {
  const std::size_t size = BytesOfType(operation.type);
  const std::size_t step = FakeWorld::kChunk / size;
  const bool receives = everywhere || rank_ == operation.root;
  for (std::size_t at = 0; at < operation.count; at += step) {
    std::byte* const recv = receives ? operation.recv + at * size : nullptr;
    const std::size_t elements = std::min(step, operation.count - at);
    if (!ReduceChunk(operation, operation.send + at * size, recv, elements)) return false;
  }
  return true;
}

bool FakeComm::ReduceScatter(const FakeOperation& operation) {
  FakeOperation block = operation;
  for (int owner = 0; owner < size_; ++owner) {
    const std::size_t begin =
        static_cast<std::size_t>(owner) * operation.count * BytesOfType(operation.type);
    block.send = operation.send + begin;
    block.root = owner;
    if (!Reduce(block, false)) return false;
  }
  return true;
}

bool FakeComm::Broadcast(const FakeOperation& operation) {
  const std::size_t bytes = operation.count * BytesOfType(operation.type);
  const bool is_root = rank_ == operation.root;
  for (std::size_t at = 0; at < bytes; at += FakeWorld::kChunk) {
    const std::size_t n = std::min(FakeWorld::kChunk, bytes - at);
    if (is_root) std::memcpy(world_->Slot(rank_), operation.send + at, n);
    if (!world_->Meet(KindOf(operation))) return false;
    std::memcpy(operation.recv + at, world_->Slot(operation.root), n);
    if (!world_->Barrier()) return false;
  }
  return true;
}

bool FakeComm::AllGather(const FakeOperation& operation) {
  const std::size_t bytes = operation.count * BytesOfType(operation.type);
  for (std::size_t at = 0; at < bytes; at += FakeWorld::kChunk) {
    const std::size_t n = std::min(FakeWorld::kChunk, bytes - at);
    std::memcpy(world_->Slot(rank_), operation.send + at, n);
    if (!world_->Meet(KindOf(operation))) return false;
    for (int peer = 0; peer < size_; ++peer) {
      std::memcpy(operation.recv + static_cast<std::size_t>(peer) * bytes + at, world_->Slot(peer),
                  n);
    }
    if (!world_->Barrier()) return false;
  }
  return true;
}

void FakeComm::Stop() { aborted_.store(true); }

void FakeComm::Abort() {
  Stop();
  world_->Break();
}

}  // namespace lockstep::comm::nccl
