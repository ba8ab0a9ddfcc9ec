// Finds the calls that a program makes again and again in the same order, so that they are counted
// in one event. Then a loop of collectives writes one line that stays in the processor's cache, and
// the watcher reads it once a look. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "watch/events/event.h"
#include "watch/events/segment.h"

namespace lockstep::watch::preload {

// A collective as the program calls it: with its library's handles, and without its buffers.
struct AsCalled {
  const void* site = nullptr;
  std::uint64_t call = 0;
  std::array<std::uint64_t, 5> words = {};  // its parameters, as far as its event tells of them

  friend bool operator==(const AsCalled& a, const AsCalled& b) {
    const auto of = [&](int word) { return a.words[word] ^ b.words[word]; };
    return a.site == b.site && ((a.call ^ b.call) | of(0) | of(1) | of(2) | of(3) | of(4)) == 0;
  }
};

class Repeats {
  // A call that is counted, and the function that it goes to.
  struct alignas(64) Counted {
    AsCalled as_called;
    const void* forward;
  };

 public:
  bool counting() const { return counting_; }
  // Is the call that is entered the next one that is counted, by the same thread, and called as it
  // was before? Then it is counted, and this is the function that it goes to; else null. A handle
  // stands for the same, because an event that ends the counting is written before that changes.
  [[gnu::always_inline]] const void* Again(const AsCalled& call, std::uint16_t thread) {
    const Counted& awaited = calls_[awaited_];
    if (!(call == awaited.as_called) || thread != thread_) return nullptr;
    Advance();
    return awaited.forward;
  }
  // How the call was called that was counted last, by Again().
  const AsCalled& Last() const { return calls_[Before(next_)].as_called; }
  // Of the call that was counted as it was entered: how it was called, and where it goes to.
  void Learn(const AsCalled& call, const void* forward) {
    if (!counting() || steps_ % 2 == 0) return;
    calls_[Before(next_)] = {call, forward};
  }
  // Is the call that is entered the next one of those that are counted? Then it is counted.
  [[gnu::always_inline]] bool Enter(const events::Event& event) {
    if (steps_ % 2 != 0 || !Same(event, *(again_ - length_ + next_))) return false;
    Advance();
    return true;
  }
  // Is it the call that was entered last that returns? Then that is counted.
  bool Leave() {
    if (steps_ % 2 == 0) return false;
    Count();
    awaited_ = next_;
    return true;
  }
  // What comes now is not counted. How much was. Another thread may ask for it while this one
  // counts a call: so the place stays.
  std::uint64_t End() {
    counting_ = false;
    awaited_ = kNone;
    return static_cast<std::uint64_t>(steps_);
  }
  // `event` may become the event with this number. Is it the first of the newest calls, again?
  bool Comes(const events::Event& event, std::uint64_t number);
  // Then they are counted from now on, in its place.
  void Begin(events::Event* place, std::uint16_t thread, std::uint64_t ticks);
  // In `place` a collective was entered, as the event with this number.
  void Note(const events::Event* place, std::uint64_t number);

 private:
  // But for the moment. Field by field: those of a call that is entered are still in registers.
  static bool Same(const events::Event& a, const events::Event& b) {
    return a.site == b.site && a.comm == b.comm && a.call == b.call && a.thread == b.thread &&
           a.flags == b.flags && a.object == b.object && a.part == b.part && a.peer == b.peer &&
           a.tag == b.tag && a.type == b.type && a.request == b.request && a.count == b.count &&
           a.type2 == b.type2 && a.count2 == b.count2;
  }
  std::uint32_t Before(std::uint32_t next) const {
    return next == 0 ? std::max(length_, 1u) - 1 : next - 1;
  }
  void Count() { std::atomic_ref(again_->count).store(++steps_, std::memory_order_release); }

  void Advance() {
    Count();
    awaited_ = kNone;
    if (++next_ == length_) next_ = 0;
  }

  static constexpr std::uint32_t kNone = events::kMostAgain;

  bool counting_ = false;
  events::Event* again_ = nullptr;  // counts them, or did last
  std::int64_t steps_ = 0;
  std::uint32_t length_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t awaited_ = kNone;  // the next one, if no call is inside
  std::uint16_t thread_ = 0;
  // How many events in a row, up to the one noted last, are the same as the one so many before.
  std::array<std::uint32_t, events::kMostAgain + 1> same_ = {};
  const events::Event* noted_ = nullptr;       // the last one
  std::uint64_t after_noted_ = 0;              // the number of the event behind it
  std::array<Counted, kNone + 1> calls_ = {};  // those that are counted, and one that never comes
};

}  // namespace lockstep::watch::preload
