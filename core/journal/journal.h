// A rank's journal: a ring of 64-byte events in memory that the worker and its agent both map.
//
// One process writes, any number of others read. An append costs less than 40 ns and no system
// call; where threads share the writer, a lock more. A SIGKILLed writer leaves no torn event: a
// slot's index is cleared before its other words change and set (release) after them, so a reader
// (acquire, twice) takes a slot whole or not at all. When the ring is full the oldest event is
// overwritten; readers say how many they missed. Protocol: a seqlock per slot (Boehm 2012, "Can
// seqlocks get along with programming language memory models?"), with release stores of the words
// in place of a fence. Memory: one cache line with the index of the newest event, then the slots;
// event i lies in slot i mod capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/journal/event.h"

namespace lockstep::journal {

// Bytes of memory for a journal of `capacity` events (a power of two, at least 2).
std::size_t JournalBytes(std::size_t capacity);

// Of one thread, until Share is called.
class JournalWriter {
 public:
  // `memory` is zeroed, 64-byte aligned and JournalBytes(capacity) long; it outlives the writer.
  static JournalWriter Create(std::span<std::byte> memory, std::size_t capacity);

  // From now on any thread may write. Called before the second one begins to.
  void Share();
  bool shared() const { return mutex_ != nullptr; }

  // Stamps `event` with the next index, the current case and phase and, if its ticks are 0, with
  // NowTicks() taken last of all; returns that stamp.
  Ticks Append(const JournalEvent& event);
  // Writes the events that come next into their slots, where no reader sees them. Publish then
  // stamps and shows all of them for a few stores each, into lines that are in the cache already.
  // An Append in their place writes over them. None of them is a kPhase or a kCase. Not when
  // shared.
  void Prepare(std::span<const JournalEvent> events);
  void Publish(Ticks ticks);
  // Convenience: kPhase and kCase (set the phase and the case of later events), kIdle, kFault.
  void EnterPhase(Phase phase);
  void BeginCase(std::uint32_t case_index);
  void Idle();
  void Fault(std::size_t index);
  // kExit, the last event: a thread that outlives the program's end writes nothing behind it.
  void Exit(int code);

 private:
  JournalWriter(std::span<std::byte> memory, std::size_t capacity);
  std::uint64_t* SlotOf(std::uint64_t index) const;
  Ticks AppendNext(const JournalEvent& event);
  // All words of a slot but its index, which is cleared, and its ticks.
  void Write(std::uint64_t* slot, const JournalEvent& event);
  void Show(std::uint64_t* slot, std::uint64_t index, Ticks ticks);

  std::uint64_t* head_;   // index of the newest event
  std::uint64_t* slots_;  // 8 words each
  std::uint64_t mask_;
  std::uint64_t next_index_ = 1;
  std::uint64_t prepared_ = 0;  // events from next_index_ on
  std::uint32_t case_index_ = 0;
  Phase phase_ = Phase::kStart;
  bool ended_ = false;
  std::unique_ptr<std::mutex> mutex_;  // of all members, when shared
};

// Events in order, oldest first; without a gap, except as Shorten leaves one.
struct Journal {
  std::vector<JournalEvent> events;
  std::uint64_t missed = 0;  // earlier events: overwritten, or more than were asked for
};

// Keeps the newest `most` events, and of those before them what nothing newer tells: on every
// communicator (there are others for the making of some out of it, and for the messages with each
// peer) its newest operation and those that did not end; the beginning of the case, and errors.
void Shorten(Journal& journal, std::size_t most);

class JournalReader {
 public:
  JournalReader(std::span<const std::byte> memory, std::size_t capacity);

  // Up to `most` of the newest events. Safe while the writer writes, after it was killed, and when
  // the process wrote rubbish over its own journal (what no writer writes is not an event).
  Journal Newest(std::size_t most) const;
  // The newest event, or nothing; three cache lines are read (cheap enough to poll).
  std::optional<JournalEvent> Last() const;

 private:
  std::uint64_t NewestIndex() const;
  Journal UpTo(std::uint64_t newest, std::size_t wanted) const;
  std::optional<JournalEvent> Read(std::uint64_t index) const;

  // Only read, and possibly mapped so; not const because std::atomic_ref<const T> is C++26.
  std::uint64_t* head_;
  std::uint64_t* slots_;
  std::uint64_t capacity_;
};

// The oldest collective of the current case that was enqueued or started and has neither end nor
// error, if any: the open invocation, which later ones queue behind. Its newest event is returned.
std::optional<JournalEvent> OpenOperation(const Journal& journal);

}  // namespace lockstep::journal
