// Calls are counted once they came three times. Those and their count lie in one chunk, so that who
// reads the count finds the calls right before it.
#include "watch/preload/repeats.h"

namespace lockstep::watch::preload {

using events::Event;
using events::Phase;

bool Repeats::Comes(const Event& event, std::uint64_t number) {
  if (number != after_noted_ || number % events::kChunkEvents == 0) return false;
  length_ = 1;
  while (length_ <= events::kMostAgain && same_[length_] < 2 * length_) ++length_;
  return length_ <= events::kMostAgain && noted_->phase == Phase::kEnterLeft &&
         Same(event, *(noted_ + 1 - length_));
}

void Repeats::Begin(Event* place, std::uint16_t thread, std::uint64_t ticks) {
  counting_ = true;
  again_ = place;
  next_ = 1 % length_;
  thread_ = thread;
  steps_ = 1;
  calls_ = {};
  Event again;
  again.thread = thread;
  again.ticks = ticks;
  again.peer = static_cast<std::int32_t>(length_);
  again.count = steps_;
  *place = again;
  std::atomic_ref<Phase>(place->phase).store(Phase::kAgain, std::memory_order_release);
}

void Repeats::Note(const Event* place, std::uint64_t number) {
  if (number != after_noted_) same_ = {};
  noted_ = place;
  after_noted_ = number + 1;
  const std::uint64_t before = number % events::kChunkEvents;  // in this chunk
  for (std::uint32_t length = 1; length <= events::kMostAgain; ++length) {
    const Event* const earlier = place - length;
    const bool same =
        length <= before && earlier->phase == Phase::kEnterLeft && Same(*earlier, *place);
    same_[length] = same ? same_[length] + 1 : 0;
  }
}

}  // namespace lockstep::watch::preload
