// Chunks that were read are used again, the newest first: their pages are there, and mostly in a
// cache. What a reader that fell behind has made large is given back to the system, a chunk at a
// time. Space is allocated before it is touched, because a full /dev/shm would be a signal else.
#include "watch/preload/chunks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace lockstep::watch::preload {

using events::Event;
using events::Header;
using events::Phase;
using events::Stopped;

namespace {

constexpr int kTakenBackAtATime = 2;  // twice what is used meanwhile
constexpr int kPopulateWrite = 23;    // MADV_POPULATE_WRITE, from Linux 5.14 on

off_t OffsetOfPlace(std::uint32_t place) {
  return static_cast<off_t>(events::kHeaderBytes + place * events::kChunkBytes);
}

// A file beyond the limit of the process would be a signal.
bool MayGrow() {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= events::kSegmentBytes;
}

}  // namespace

Header* Chunks::Open(int file) {
  file_ = file;
  if (!MayGrow()) {
    errno = EFBIG;
    return nullptr;
  }
  constexpr auto kLeast = static_cast<off_t>(events::kHeaderBytes + events::kChunkBytes);
  if (ftruncate(file, static_cast<off_t>(events::kSegmentBytes)) != 0 ||
      fallocate(file, 0, 0, kLeast) != 0) {
    return nullptr;
  }
  void* const memory = mmap(nullptr, events::kSegmentBytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) return nullptr;
  header_ = static_cast<Header*>(memory);
  for (std::uint32_t place = events::kChunks - 1; place > 0; --place) {
    empty_[empty_count_++] = place;
  }
  Fill(0);
  while (kept_count_ + 1 < kFirst && Fill(empty_[empty_count_ - 1])) {
    kept_[kept_count_++] = empty_[--empty_count_];
  }
  header_->ready.store(1);  // at place 0
  return header_;
}

Stopped Chunks::Prepare(std::uint64_t chunk) {
  const std::uint64_t read = header_->tail.load(std::memory_order_acquire) / events::kChunkEvents;
  TakeBack(read);
  std::uint32_t place = 0;
  if (kept_count_ > 0) {
    place = kept_[--kept_count_];
    Clear(place);
  } else if (empty_count_ > 0) {
    place = empty_[--empty_count_];
    if (!Fill(place)) return Stopped::kNoSpace;
  } else {
    return Stopped::kRingFull;
  }
  header_->places[chunk % events::kChunks].store(place, std::memory_order_relaxed);
  header_->ready.store(chunk + 1, std::memory_order_release);
  return Stopped::kNo;
}

// A few at a time: the program's call is waiting.
void Chunks::TakeBack(std::uint64_t read) {
  for (int each = 0; each < kTakenBackAtATime && taken_back_ < read; ++each) {
    const std::uint32_t place =
        header_->places[taken_back_++ % events::kChunks].load(std::memory_order_relaxed);
    if (kept_count_ < kMostKept) {
      kept_[kept_count_++] = place;
    } else {
      Empty(place);
      empty_[empty_count_++] = place;
    }
  }
}

bool Chunks::Fill(std::uint32_t place) {
  if (fallocate(file_, 0, OffsetOfPlace(place), events::kChunkBytes) != 0) return false;
  madvise(At(place), events::kChunkBytes, kPopulateWrite);  // or page by page, when it is used
  return true;
}

// An event is whole when it has a phase.
void Chunks::Clear(std::uint32_t place) {
  Event* const first = At(place);
  for (Event* each = first; each != first + events::kChunkEvents; ++each) {
    std::atomic_ref<Phase>(each->phase).store(Phase::kNothing, std::memory_order_relaxed);
  }
}

void Chunks::Empty(std::uint32_t place) {
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, OffsetOfPlace(place),
            events::kChunkBytes);
}

Event* Chunks::At(std::uint32_t place) {
  return reinterpret_cast<Event*>(reinterpret_cast<char*>(header_) + OffsetOfPlace(place));
}

}  // namespace lockstep::watch::preload
