// Maps a watched process's segment and takes events until it meets one that is not whole. Pages
// that were read are punched out of the file, so a long run takes little memory. It never waits for
// the writer.
#include "watch/run/segment_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
  if (memory == MAP_FAILED) {
    close(file);
    return EnvironmentError(fmt::format("{}: not ready", path));
  }
  std::unique_ptr<SegmentReader> reader(new SegmentReader(file, memory));
  if (reader->header_->magic.load(std::memory_order_acquire) != events::kMagic) {
    return EnvironmentError(fmt::format("{}: not ready", path));
  }
  return reader;
}

SegmentReader::SegmentReader(int file, void* memory)
    : file_(file),
      header_(static_cast<events::Header*>(memory)),
      ring_(reinterpret_cast<Event*>(static_cast<char*>(memory) + events::kHeaderBytes)) {}

SegmentReader::~SegmentReader() {
  munmap(header_, events::kSegmentBytes);
  close(file_);
}

std::uint64_t SegmentReader::Drain(std::uint64_t most,
                                   const std::function<void(const Event&)>& take) {
  const std::uint64_t before = read_;
  const std::uint64_t head = header_->head.load(std::memory_order_acquire);
  while (read_ < head && read_ - before < most) {
    Event& place = ring_[read_ % events::kRingEvents];
    const Phase phase = std::atomic_ref<Phase>(place.phase).load(std::memory_order_acquire);
    if (phase == Phase::kNothing) break;
    const Event event = place;
    ++read_;
    take(event);
    if (read_ % events::kChunkEvents != 0 || read_ < 2 * events::kChunkEvents) continue;
    const std::uint64_t whole = read_ - 2 * events::kChunkEvents;  // the newest stays for `status`
    const std::uint64_t at = whole % events::kRingEvents;
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(events::kHeaderBytes + at * sizeof(Event)),
              static_cast<off_t>(events::kChunkEvents * sizeof(Event)));
    header_->tail.store(whole + events::kChunkEvents, std::memory_order_release);
  }
  return read_ - before;
}

}  // namespace lockstep::watch::run
