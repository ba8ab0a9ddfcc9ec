// How ranks of the stand-in library reach each other: shared memory, between threads and processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace lockstep::comm::nccl {

// Where the memory of a world is found: a memfd of a living process. It leaves nothing behind.
struct WorldAddress {
  int pid = 0;
  int fd = -1;
};

class FakeWorld {
 public:
  static constexpr int kMostRanks = 16;
  static constexpr std::size_t kChunk = 64 << 10;  // bytes that a rank shows the others at a time

  // Memory for one world; its fd stays open in this process.
  static WorldAddress Create();
  // nullptr, and errno, when the memory is gone or /dev/shm has no MiB left. `leave` is asked while
  // a rank waits: true ends the wait.
  static std::unique_ptr<FakeWorld> Open(WorldAddress address, int rank, int size,
                                         std::function<bool()> leave);
  ~FakeWorld();
  FakeWorld(const FakeWorld&) = delete;
  FakeWorld& operator=(const FakeWorld&) = delete;

  // False, here and below: it was told to leave.
  bool AwaitAll();  // all ranks have opened it
  bool Barrier();
  // A barrier of an operation of this kind. Ranks that meet in different ones stand still there, as
  // kernels of different kinds do.
  bool Meet(std::uint32_t kind);
  std::byte* Slot(int rank) { return shared_->slots[rank]; }
  bool Send(int peer, const std::byte* data, std::size_t bytes);
  bool Receive(int peer, std::byte* data, std::size_t bytes);
  // Tells the others that a rank of theirs is gone.
  void Break() { shared_->broken.store(1); }
  bool broken() const { return shared_->broken.load() != 0; }
  // Where those that remain find the address of their next world; 0 before it is known.
  std::atomic<std::uint64_t>& successor() { return shared_->successor; }

 private:
  struct Mailbox {
    std::atomic<std::uint32_t> full;
    std::byte data[8 << 10];
  };
  struct Shared {
    std::atomic<std::uint32_t> attached, arrived, generation, broken;
    std::atomic<std::uint64_t> successor;
    std::atomic<std::uint32_t> kinds[kMostRanks];
    std::byte slots[kMostRanks][kChunk];
    Mailbox mailboxes[kMostRanks][kMostRanks];  // to, from
  };

  FakeWorld(Shared* shared, int rank, int size, std::function<bool()> leave)
      : shared_(shared), rank_(rank), size_(size), leave_(std::move(leave)) {}
  bool WaitUntil(const std::function<bool()>& there);

  Shared* shared_;
  int rank_;
  int size_;
  std::function<bool()> leave_;
};

}  // namespace lockstep::comm::nccl
