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

OutboxEnd::OutboxEnd(std::span<std::byte> memory, std::size_t capacity)
    : header_(reinterpret_cast<OutboxHeader*>(memory.data())),
      data_(memory.data() + sizeof(OutboxHeader)),
      capacity_(capacity) {
  LOCKSTEP_CHECK(memory.size() >= OutboxBytes(capacity), "outbox memory is too small");
}

std::size_t OutboxWriter::free_bytes() const {
  return capacity_ - static_cast<std::size_t>(header_->written.load(std::memory_order_relaxed) -
                                              header_->read.load(std::memory_order_acquire));
}

bool OutboxWriter::Append(std::span<const std::byte> record) {
  if (record.size() > free_bytes()) return false;
  const std::uint64_t written = header_->written.load(std::memory_order_relaxed);
  const std::size_t at = static_cast<std::size_t>(written) & (capacity_ - 1);
  const std::size_t first = std::min(record.size(), capacity_ - at);
  if (first > 0) std::memcpy(data_ + at, record.data(), first);
  if (record.size() > first) std::memcpy(data_, record.data() + first, record.size() - first);
  header_->written.store(written + record.size(), std::memory_order_release);
  return true;
}

std::string OutboxReader::Drain(std::size_t most) {
  const std::uint64_t written = header_->written.load(std::memory_order_acquire);
  const std::uint64_t read = header_->read.load(std::memory_order_relaxed);
  if (written - read > capacity_) return {};
  const std::size_t size = std::min<std::size_t>(most, static_cast<std::size_t>(written - read));
  const std::size_t at = static_cast<std::size_t>(read) & (capacity_ - 1);
  const std::size_t first = std::min(size, capacity_ - at);
  std::string bytes(reinterpret_cast<const char*>(data_ + at), first);
  bytes.append(reinterpret_cast<const char*>(data_), size - first);
  header_->read.store(read + size, std::memory_order_release);
  return bytes;
}

}  // namespace lockstep::control
