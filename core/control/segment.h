// The memory that an agent and its worker share: a header with the worker's card, the words that a
// device marks, the journal, the outbox.
//
// It has no name (memfd), so nothing can be left behind whoever dies; its size is sealed, so the
// worker cannot make the agent fault. Source: memfd_create(2), fcntl(2) F_ADD_SEALS.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/base/fd.h"
#include "core/base/status.h"

namespace lockstep::control {

class Segment {
 public:
  // Zeroed. The capacities are powers of two: events, bytes. kEnvironment when memory lacks.
  static Result<std::unique_ptr<Segment>> Create(std::size_t journal_capacity,
                                                 std::size_t outbox_capacity);
  // Maps a segment that another process created.
  static Result<std::unique_ptr<Segment>> Map(Fd fd);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int fd() const { return fd_.get(); }
  std::size_t journal_capacity() const { return journal_capacity_; }
  std::size_t outbox_capacity() const { return outbox_capacity_; }
  std::span<std::byte> card() const;          // of WriteCard and ReadCard
  std::span<std::byte> device_marks() const;  // core/journal/device_marks.h; whole pages
  std::span<std::byte> journal() const;
  std::span<std::byte> outbox() const;

 private:
  Segment(Fd fd, std::byte* memory, std::size_t bytes, std::size_t journal_capacity,
          std::size_t outbox_capacity)
      : fd_(std::move(fd)),
        memory_(memory),
        bytes_(bytes),
        journal_capacity_(journal_capacity),
        outbox_capacity_(outbox_capacity) {}
  Fd fd_;
  std::byte* memory_;
  std::size_t bytes_;
  std::size_t journal_capacity_;
  std::size_t outbox_capacity_;
};

// What a worker says of itself, in the memory that it shares with its agent: known also when the
// worker is wedged or dead.
struct WorkerCard {
  std::string gpu_bus;   // where its device sits, as "0000:3b:00.0"; empty: nowhere
  std::string log_file;  // what its library writes of its trouble; empty: nothing
};

inline constexpr std::size_t kWorkerCardBytes = 2048;

// Texts that are too long are left out.
void WriteCard(std::span<std::byte> memory, const WorkerCard& card);
// The worker is under test, and may have written anything: texts end with the memory.
WorkerCard ReadCard(std::span<const std::byte> memory);

}  // namespace lockstep::control
