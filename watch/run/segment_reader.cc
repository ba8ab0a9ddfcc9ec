// Maps a watched process's segment and takes events until it meets one that is not whole. The
// writer uses chunks again that were read, so a long run takes little memory, and events are mostly
// in a cache. It never waits for the writer.
#include "watch/run/segment_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace lockstep::watch::run {

using events::Event;
using events::Phase;

Result<std::unique_ptr<SegmentReader>> SegmentReader::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return EnvironmentError(fmt::format("{}: cannot be opened", path));
  struct stat facts;
  void* memory = MAP_FAILED;
  if (fstat(file, &facts) == 0 && facts.st_size == static_cast<off_t>(events::kSegmentBytes)) {
    memory = mmap(nullptr, events::kSegmentBytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE, file, 0);
  }
  close(file);
  if (memory == MAP_FAILED) {
    return EnvironmentError(fmt::format("{}: not ready", path));
  }
  std::unique_ptr<SegmentReader> reader(new SegmentReader(memory));
  if (reader->header_->magic.load(std::memory_order_acquire) != events::kMagic) {
    return EnvironmentError(fmt::format("{}: not ready", path));
  }
  return reader;
}

void SegmentReader::Abandon(const std::string& path) {
  const Result<std::unique_ptr<SegmentReader>> reader = Open(path);
  if (!reader.ok()) return;
  (*reader)->header_->stopped.store(static_cast<std::uint32_t>(events::Stopped::kAbandoned));
}

SegmentReader::SegmentReader(void* memory) : header_(static_cast<events::Header*>(memory)) {}

SegmentReader::~SegmentReader() { munmap(header_, events::kSegmentBytes); }

std::span<const Event> SegmentReader::Complete(std::uint64_t most) const {
  constexpr std::uint64_t kMostAtOnce = 64;  // they are still in the nearest cache when taken
  const std::uint64_t ready = header_->ready.load(std::memory_order_acquire);
  const std::uint64_t head = header_->head.load(std::memory_order_acquire);
  const std::uint64_t end = std::min(head, ready * events::kChunkEvents);
  if (read_ >= end) return {};
  const std::uint64_t of_chunk = events::kChunkEvents - read_ % events::kChunkEvents;
  most = std::min({most, end - read_, of_chunk, kMostAtOnce});
  Event* const first = reinterpret_cast<Event*>(reinterpret_cast<char*>(header_) +
                                                events::OffsetOf(*header_, read_));
  std::uint64_t count = 0;
  while (count < most &&
         std::atomic_ref<Phase>(first[count].phase).load(std::memory_order_acquire) !=
             Phase::kNothing) {
    ++count;
  }
  return {first, count};
}

std::uint64_t SegmentReader::Drain(std::uint64_t most, const Take& take) {
  const std::uint64_t before = read_;
  while (read_ - before < most) {
    const std::span<const Event> some = Complete(most - (read_ - before));
    if (some.empty()) break;
    read_ += some.size();
    take(some);
    // The newest chunk stays for `status`.
    if (read_ % events::kChunkEvents != 0 || read_ < 2 * events::kChunkEvents) continue;
    header_->tail.store(read_ - events::kChunkEvents, std::memory_order_release);
  }
  return read_ - before;
}

}  // namespace lockstep::watch::run
