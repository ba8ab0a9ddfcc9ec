// Maps a watched process's segment and takes events until it meets one that is not whole. The
// writer uses chunks again that were read, so a long run takes little memory, and events are mostly
// in a cache. It never waits for the writer. The newest event may become another one (HasLeft):
// what that adds is given later, as an event of its own.
#include "watch/run/segment_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "watch/events/ticks.h"

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
  std::unique_ptr<SegmentReader> reader(new SegmentReader(memory, path));
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

SegmentReader::SegmentReader(void* memory, std::string path)
    : header_(static_cast<events::Header*>(memory)), path_(std::move(path)) {}

void SegmentReader::Unlink() const { unlink(path_.c_str()); }

SegmentReader::~SegmentReader() { munmap(header_, events::kSegmentBytes); }

Event& SegmentReader::At(std::uint64_t event) const {
  return *reinterpret_cast<Event*>(reinterpret_cast<char*>(header_) +
                                   events::OffsetOf(*header_, event));
}

namespace {

Phase PhaseOf(Event& event) {
  return std::atomic_ref<Phase>(event.phase).load(std::memory_order_acquire);
}

std::int64_t StepsOf(Event& again) {
  return std::atomic_ref(again.count).load(std::memory_order_acquire);
}

}  // namespace

std::uint64_t SegmentReader::AskWriter() {
  // The writer's processor has these words: it takes a while to get them.
  const std::uint64_t ready = header_->ready.load(std::memory_order_acquire);
  const std::uint64_t head = header_->head.load(std::memory_order_acquire);
  return known_ = std::min(head, ready * events::kChunkEvents);
}

std::span<const Event> SegmentReader::Complete(std::uint64_t most) {
  constexpr std::uint64_t kMostAtOnce = 64;  // they are still in the nearest cache when taken
  if (read_ >= known_ && read_ >= AskWriter()) return {};
  const std::uint64_t of_chunk = events::kChunkEvents - read_ % events::kChunkEvents;
  most = std::min({most, known_ - read_, of_chunk, kMostAtOnce});
  Event* const first = &At(read_);
  std::uint64_t count = 0;
  const auto is_event = [](Phase phase) {
    return phase != Phase::kNothing && phase != Phase::kAgain;
  };
  while (count < most && is_event(PhaseOf(first[count]))) ++count;
  return {first, count};
}

bool SegmentReader::ComesAgain() {
  if (read_ >= known_ || PhaseOf(At(read_)) != Phase::kAgain) return false;
  const std::int64_t length = At(read_).peer;  // a spoiled file must not spoil the watcher
  const auto before = static_cast<std::int64_t>(read_ % events::kChunkEvents);
  return length > 0 && length <= std::min<std::int64_t>(before, events::kMostAgain);
}

events::Cycle SegmentReader::Coming() {
  if (LeftMeanwhile() || (read_ >= known_ && read_ >= AskWriter()) || !ComesAgain()) return {};
  Event& again = At(read_);
  events::Cycle cycle;
  cycle.length = static_cast<std::size_t>(again.peer);
  cycle.inside = given_again_ % 2 != 0;
  const std::int64_t taken = given_again_ / 2 + (cycle.inside ? 1 : 0);  // calls
  cycle.over = static_cast<std::uint64_t>(std::max(StepsOf(again) / 2 - taken, std::int64_t{0}));
  for (std::size_t each = 0; each < cycle.length; ++each) {
    const auto step = 2 * (taken + static_cast<std::int64_t>(each));
    cycle.calls[each] = events::EventAgain(&again, step);
    cycle.calls[each].phase = Phase::kEnterLeft;
  }
  return cycle;
}

void SegmentReader::Pass(std::uint64_t calls) {
  given_again_ += static_cast<std::int64_t>(2 * calls);
  given_ += 2 * calls;
  std::atomic_ref(At(read_).ticks).store(events::NowTicks(), std::memory_order_relaxed);
}

bool SegmentReader::GiveAgain(std::uint64_t& most, const Take& take) {
  Event& again = At(read_);
  const std::uint64_t next = read_ + 1;
  // Asked first: then the count is the last one.
  const bool over = (next < known_ || next < AskWriter()) && PhaseOf(At(next)) != Phase::kNothing;
  const std::int64_t steps = StepsOf(again);
  const std::int64_t before = given_again_;
  std::array<Event, 64> some;
  std::size_t count = 0;
  for (; given_again_ < steps && most > 0; --most) {
    Event& event = some[count++] = events::EventAgain(&again, given_again_);
    const bool both = event.phase == Phase::kEnter && given_again_ + 1 < steps;
    if (both) event.phase = Phase::kEnterLeft;
    given_again_ += both ? 2 : 1;
    given_ += both ? 2 : 1;
    if (count == some.size()) take({some.data(), std::exchange(count, 0)});
  }
  if (count > 0) take({some.data(), count});
  if (steps > before) {
    std::atomic_ref(again.ticks).store(events::NowTicks(), std::memory_order_relaxed);
  }
  if (!over || given_again_ < steps) return false;
  given_again_ = 0;
  read_ = next;
  return true;
}

// All but the newest event stay as they are.
void SegmentReader::Give(std::span<const Event> some, const Take& take) {
  Event last = some.back();
  last.phase = PhaseOf(At(read_ + some.size() - 1));
  read_ += some.size();
  some = some.first(some.size() - 1);
  for (const Event& event : some) given_ += events::HasLeft(event.phase) ? 2 : 1;
  given_ += events::HasLeft(last.phase) ? 2 : 1;
  may_leave_ = events::LeftAfter(last.phase) != Phase::kNothing;
  if (!some.empty()) take(some);
  take({&last, 1});
}

bool SegmentReader::LeftMeanwhile() const {
  return may_leave_ && events::HasLeft(PhaseOf(At(read_ - 1)));
}

std::uint64_t SegmentReader::begun() const {
  const std::uint64_t ready = header_->ready.load(std::memory_order_acquire);
  const std::uint64_t head = header_->head.load(std::memory_order_acquire);
  const std::uint64_t begun = given_ + (head - read_);
  if (head == read_) return begun + (LeftMeanwhile() ? 1 : 0);
  if (read_ >= ready * events::kChunkEvents || PhaseOf(At(read_)) != Phase::kAgain) return begun;
  return begun - 1 + static_cast<std::uint64_t>(StepsOf(At(read_)) - given_again_);
}

std::uint64_t SegmentReader::Drain(std::uint64_t most, const Take& take) {
  const std::uint64_t before = given_;
  while (most > 0) {
    const std::span<const Event> some = Complete(most);
    const bool again = some.empty() && ComesAgain();
    // What is complete was written after the call before it returned.
    if (LeftMeanwhile()) {
      Event leave = At(read_ - 1);
      leave.phase = Phase::kLeave;
      leave.peer = 0;
      may_leave_ = false;
      ++given_;
      take({&leave, 1});
    }
    if (!some.empty()) {
      Give(some, take);
      most -= some.size();
    } else if (!again || !GiveAgain(most, take)) {
      break;
    }
    // The newest chunk stays for `status`.
    if (read_ % events::kChunkEvents != 0 || read_ < 2 * events::kChunkEvents) continue;
    header_->tail.store(read_ - events::kChunkEvents, std::memory_order_release);
  }
  return given_ - before;
}

}  // namespace lockstep::watch::run
