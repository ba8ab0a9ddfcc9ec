#include "core/control/outbox.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::control {

std::size_t OutboxBytes(std::size_t capacity) {
  LOCKSTEP_CHECK(std::has_single_bit(capacity), "an outbox holds a power of two of bytes");
  return sizeof(OutboxHeader) + capacity;
}

OutboxEnd::OutboxEnd(std::span<std::byte> memory, std::size_t bytes)
    : header(reinterpret_cast<OutboxHeader*>(memory.data())),
      data(memory.data() + sizeof(OutboxHeader)),
      capacity(bytes) {
  LOCKSTEP_CHECK(memory.size() >= OutboxBytes(capacity), "outbox memory is too small");
}

std::size_t OutboxWriter::free_bytes() const {
  return capacity - static_cast<std::size_t>(header->written.load(std::memory_order_relaxed) -
                                             header->read.load(std::memory_order_acquire));
}

bool OutboxWriter::Append(std::span<const std::byte> record) {
  if (record.size() > free_bytes()) return false;
  const std::uint64_t written = header->written.load(std::memory_order_relaxed);
  const std::size_t at = static_cast<std::size_t>(written) & (capacity - 1);
  const std::size_t first = std::min(record.size(), capacity - at);
  if (first > 0) std::memcpy(data + at, record.data(), first);
  if (record.size() > first) std::memcpy(data, record.data() + first, record.size() - first);
  header->written.store(written + record.size(), std::memory_order_release);
  return true;
}

std::string OutboxReader::Drain(std::size_t most) {
  const std::uint64_t written = header->written.load(std::memory_order_acquire);
  const std::uint64_t read = header->read.load(std::memory_order_relaxed);
  if (written - read > capacity) return {};
  const std::size_t size = std::min<std::size_t>(most, static_cast<std::size_t>(written - read));
  const std::size_t at = static_cast<std::size_t>(read) & (capacity - 1);
  const std::size_t first = std::min(size, capacity - at);
  std::string bytes(reinterpret_cast<const char*>(data + at), first);
  bytes.append(reinterpret_cast<const char*>(data), size - first);
  header->read.store(read + size, std::memory_order_release);
  return bytes;
}

}  // namespace lockstep::control
