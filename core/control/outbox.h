// The shared memory of an Outbox: one writer, one reader, in two processes. A SIGKILLed writer
// leaves no torn record, because the length is published (release) after the bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep::control {

// A byte queue in shared memory from the worker to its agent: what the worker appended survives the
// worker. The agent drains it whenever the worker sends a message, and when the worker died.
class Outbox {
 public:
  virtual ~Outbox() = default;
  // Appends the whole record or nothing; false when there is no room. No system call.
  virtual bool Append(std::span<const std::byte> record) = 0;
  virtual std::size_t free_bytes() const = 0;
  virtual std::size_t capacity_bytes() const = 0;
};

struct OutboxHeader {
  alignas(64) std::atomic<std::uint64_t> written;  // bytes since the start, by the worker
  alignas(64) std::atomic<std::uint64_t> read;     // bytes since the start, by the agent
};
static_assert(sizeof(OutboxHeader) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

// Bytes of memory for an outbox of `capacity` bytes (a power of two).
std::size_t OutboxBytes(std::size_t capacity);

// What both ends see. `memory` is 64-byte aligned and OutboxBytes(bytes) long; zeroed at first.
struct OutboxEnd {
  OutboxEnd(std::span<std::byte> memory, std::size_t bytes);
  OutboxHeader* header;
  std::byte* data;
  std::size_t capacity;
};

class OutboxWriter : public Outbox, private OutboxEnd {
 public:
  using OutboxEnd::OutboxEnd;
  bool Append(std::span<const std::byte> record) override;
  std::size_t free_bytes() const override;
  std::size_t capacity_bytes() const override { return capacity; }
};

class OutboxReader : private OutboxEnd {
 public:
  using OutboxEnd::OutboxEnd;
  // Takes up to `most` bytes. Empty when there is nothing, or when the worker overwrote the header
  // with nonsense.
  std::string Drain(std::size_t most);
};

}  // namespace lockstep::control
