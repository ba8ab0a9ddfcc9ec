// The seqlock of a journal's slots. A writer clears the slot's index, writes the words, sets the
// index; a reader looks at the index twice. Fields are packed into words by shifts, which avoids
// stalls of store forwarding. Readers take no value on trust.
#include "core/journal/journal.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "core/base/check.h"

namespace lockstep::journal {
namespace {

constexpr std::size_t kWords = sizeof(JournalEvent) / sizeof(std::uint64_t);
constexpr std::size_t kIndexWord = 0;
constexpr std::size_t kTicksWord = 1;
constexpr std::size_t kHeaderBytes = 64;
// A writer can lap the ring between reading the head and a slot: then the reader begins again.
constexpr int kAttempts = 8;
using Words = std::array<std::uint64_t, kWords>;

static_assert(offsetof(JournalEvent, index) == kIndexWord * sizeof(std::uint64_t));
static_assert(offsetof(JournalEvent, ticks) == kTicksWord * sizeof(std::uint64_t));
// The memory is shared between processes, so nothing may hide a lock beside it.
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

std::uint64_t Load(std::uint64_t* word) {
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}

void Store(std::uint64_t* word, std::uint64_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

void CheckMemory(const void* memory, std::size_t bytes, std::size_t capacity) {
  LOCKSTEP_CHECK(capacity >= 2 && std::has_single_bit(capacity),
                 "a journal's capacity is a power of two, at least 2");
  LOCKSTEP_CHECK(bytes >= JournalBytes(capacity), "memory shorter than JournalBytes(capacity)");
  LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(memory) % alignof(JournalEvent) == 0,
                 "a journal's memory is aligned to a cache line");
}

// The last two words of an event. By shifts and not std::bit_cast: reading a word back that was
// just stored field by field stalls store forwarding, which costs 12 of 34 ns an append.
static_assert(std::endian::native == std::endian::little);

std::uint64_t NthAndMessages(const JournalEvent& event) {
  return event.nth | std::uint64_t{event.messages_before} << 32;
}

std::uint64_t CaseAndRoot(std::uint32_t case_index, std::int32_t root) {
  return case_index | std::uint64_t{static_cast<std::uint32_t>(root)} << 32;
}

std::uint64_t SmallFields(const JournalEvent& event, Phase phase) {
  return static_cast<std::uint64_t>(event.kind) | std::uint64_t{event.communicator} << 16 |
         static_cast<std::uint64_t>(event.collective) << 32 |
         static_cast<std::uint64_t>(event.type) << 40 |
         static_cast<std::uint64_t>(event.reduction) << 48 |
         static_cast<std::uint64_t>(phase) << 56;
}

// What a writer can have written; anything else is rubbish that a broken process left.
bool IsSane(const JournalEvent& event) {
  return event.kind > EventKind::kNone && event.kind <= kLastEventKind &&
         event.collective <= collective::Collective::kRecv &&
         event.type <= collective::kLastDataType &&
         event.reduction <= collective::Reduction::kMax && event.phase <= Phase::kBarrier;
}

}  // namespace

std::size_t JournalBytes(std::size_t capacity) {
  return kHeaderBytes + capacity * sizeof(JournalEvent);
}

JournalWriter JournalWriter::Create(std::span<std::byte> memory, std::size_t capacity) {
  CheckMemory(memory.data(), memory.size(), capacity);
  return JournalWriter(memory, capacity);
}

JournalWriter::JournalWriter(std::span<std::byte> memory, std::size_t capacity)
    : head_(reinterpret_cast<std::uint64_t*>(memory.data())),
      slots_(reinterpret_cast<std::uint64_t*>(memory.data() + kHeaderBytes)),
      mask_(capacity - 1) {}

std::uint64_t* JournalWriter::SlotOf(std::uint64_t index) const {
  return slots_ + (index & mask_) * kWords;
}

void JournalWriter::Write(std::uint64_t* slot, const JournalEvent& event) {
  Store(slot + kIndexWord, 0);
  // Each release store also keeps the cleared index before its word: a reader that saw a new word
  // sees that the slot is being written.
  Store(slot + 2, event.sequence);
  Store(slot + 3, static_cast<std::uint64_t>(event.count));
  Store(slot + 4, NthAndMessages(event));
  Store(slot + 5, static_cast<std::uint64_t>(event.value));
  Store(slot + 6, CaseAndRoot(case_index_, event.root));
  Store(slot + 7, SmallFields(event, phase_));
}

void JournalWriter::Show(std::uint64_t* slot, std::uint64_t index, Ticks ticks) {
  Store(slot + kTicksWord, ticks);
  Store(slot + kIndexWord, index);
  Store(head_, index);
}

Ticks JournalWriter::Append(const JournalEvent& event) {
  if (!shared()) [[likely]]
    return AppendNext(event);
  std::lock_guard lock(*mutex_);
  return AppendNext(event);
}

inline Ticks JournalWriter::AppendNext(const JournalEvent& event) {
  if (ended_) [[unlikely]]
    return event.ticks != 0 ? event.ticks : NowTicks();
  if (event.kind == EventKind::kPhase) phase_ = event.phase;
  if (event.kind == EventKind::kExit) ended_ = true;
  if (event.kind == EventKind::kCase) case_index_ = event.case_index;
  prepared_ = 0;
  const std::uint64_t index = next_index_++;
  std::uint64_t* slot = SlotOf(index);
  Write(slot, event);
  const Ticks ticks = event.ticks != 0 ? event.ticks : NowTicks();
  Show(slot, index, ticks);
  return ticks;
}

void JournalWriter::Share() {
  if (mutex_ == nullptr) mutex_ = std::make_unique<std::mutex>();
}

void JournalWriter::Prepare(std::span<const JournalEvent> events) {
  LOCKSTEP_CHECK(!shared(), "what one thread prepares another would write over");
  LOCKSTEP_CHECK(events.size() <= mask_, "more events than a ring beside its newest one holds");
  prepared_ = events.size();
  for (std::size_t i = 0; i < events.size(); ++i) Write(SlotOf(next_index_ + i), events[i]);
}

void JournalWriter::Publish(Ticks ticks) {
  for (; prepared_ > 0; --prepared_, ++next_index_) Show(SlotOf(next_index_), next_index_, ticks);
}

void JournalWriter::EnterPhase(Phase phase) { Append({.kind = EventKind::kPhase, .phase = phase}); }

void JournalWriter::BeginCase(std::uint32_t case_index) {
  Append({.case_index = case_index, .kind = EventKind::kCase});
}

void JournalWriter::Idle() {
  JournalEvent event;
  event.kind = EventKind::kIdle;
  Append(event);
}

void JournalWriter::Fault(std::size_t index) {
  Append({.value = static_cast<std::int64_t>(index), .kind = EventKind::kFault});
}

void JournalWriter::Exit(int code) { Append({.value = code, .kind = EventKind::kExit}); }

JournalReader::JournalReader(std::span<const std::byte> memory, std::size_t capacity)
    : head_(reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(memory.data()))),
      slots_(head_ + kHeaderBytes / sizeof(std::uint64_t)),
      capacity_(capacity) {
  CheckMemory(memory.data(), memory.size(), capacity);
}

std::optional<JournalEvent> JournalReader::Read(std::uint64_t index) const {
  std::uint64_t* slot = slots_ + (index & (capacity_ - 1)) * kWords;
  Words words;
  for (std::size_t w = 0; w < kWords; ++w) words[w] = Load(slot + w);
  if (index == 0 || words[kIndexWord] != index || Load(slot + kIndexWord) != index) {
    return std::nullopt;
  }
  const auto event = std::bit_cast<JournalEvent>(words);
  if (!IsSane(event)) return std::nullopt;
  return event;
}

std::uint64_t JournalReader::NewestIndex() const {
  const std::uint64_t head = Load(head_);
  // A writer that was killed between its last two stores left a whole event beyond the head.
  return Read(head + 1) ? head + 1 : head;
}

Journal JournalReader::UpTo(std::uint64_t newest, std::size_t wanted) const {
  Journal journal;
  journal.events.reserve(wanted);
  // Newest first: a writer that goes on overwrites the oldest first, so the first slot that is not
  // whole any more ends what can be read, and what was read has no gap.
  std::uint64_t index = newest;
  for (; newest - index < wanted; --index) {
    const auto event = Read(index);
    if (!event) break;
    journal.events.push_back(*event);
  }
  std::ranges::reverse(journal.events);
  journal.missed = index;
  return journal;
}

Journal JournalReader::Newest(std::size_t most) const {
  for (int attempt = 1;; ++attempt) {
    const std::uint64_t newest = NewestIndex();
    const std::size_t wanted = std::min<std::uint64_t>({most, newest, capacity_});
    Journal journal = UpTo(newest, wanted);
    // Whoever waited for a processor in between reads slots that the writer filled anew.
    const bool overtaken = 2 * journal.events.size() < wanted && NewestIndex() != newest;
    if (!overtaken || attempt == kAttempts) return journal;
  }
}

std::optional<JournalEvent> JournalReader::Last() const {
  // The next head is newer.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t newest = NewestIndex();
    if (newest == 0) return std::nullopt;
    if (const auto event = Read(newest)) return event;
  }
  return std::nullopt;
}

namespace {

// What positions of events are compared in: a communicator, the making of some out of it, the
// messages with one peer in one direction.
using Line = std::tuple<std::uint16_t, bool, int, std::int32_t>;

Line LineOf(const JournalEvent& event) {
  if (IsSplit(event.kind)) return {event.communicator, true, 0, 0};
  if (!collective::IsMessage(event.collective)) return {event.communicator, false, 0, 0};
  return {event.communicator, false, 1 + static_cast<int>(event.collective), event.root};
}

}  // namespace

void Shorten(Journal& journal, std::size_t most) {
  if (journal.events.size() <= most) return;
  const auto newest = journal.events.end() - static_cast<std::ptrdiff_t>(most);
  std::map<Line, const JournalEvent*> latest;
  std::vector<const JournalEvent*> open;  // few at any time
  std::set<const JournalEvent*> kept;
  const JournalEvent* begun_case = nullptr;
  for (auto event = journal.events.begin(); event != newest; ++event) {
    if (event->kind == EventKind::kCase) {
      open.clear();  // what an earlier case left behind is not what the rank is in
      begun_case = &*event;
    }
    if (!IsOfCall(event->kind) && !IsSplit(event->kind)) continue;
    const Line line = LineOf(*event);
    latest[line] = &*event;
    std::erase_if(open, [&](const JournalEvent* begun) {
      return begun->sequence == event->sequence && LineOf(*begun) == line;
    });
    const bool failed = event->kind == EventKind::kError;
    if (failed) kept.insert(&*event);
    if (!failed && event->kind != EventKind::kEnd && event->kind != EventKind::kSplitEnd)
      open.push_back(&*event);
  }
  if (begun_case != nullptr) kept.insert(begun_case);
  kept.insert(open.begin(), open.end());
  for (const auto& [line, event] : latest) kept.insert(event);
  std::vector<JournalEvent> events;
  events.reserve(kept.size() + most);
  for (const JournalEvent* event : kept) events.push_back(*event);  // by address, so in order
  events.insert(events.end(), newest, journal.events.end());
  journal.missed += journal.events.size() - events.size();
  journal.events = std::move(events);
}

std::optional<JournalEvent> OpenOperation(const Journal& journal) {
  struct HashKey {
    std::size_t operator()(const std::pair<std::uint16_t, std::uint64_t>& key) const {
      return std::hash<std::uint64_t>()(key.second * 0x10001 + key.first);
    }
  };
  std::unordered_set<std::pair<std::uint16_t, std::uint64_t>, HashKey> seen;
  std::optional<JournalEvent> open;
  for (auto event = journal.events.rbegin(); event != journal.events.rend(); ++event) {
    if (event->kind == EventKind::kCase) break;
    const bool begins = event->kind == EventKind::kEnqueue || event->kind == EventKind::kStart;
    const bool ends = event->kind == EventKind::kEnd || event->kind == EventKind::kError;
    if (!begins && !ends) continue;
    // Seen first is newest: an older event of the same operation says nothing new.
    if (!seen.emplace(event->communicator, event->sequence).second) continue;
    // What runs is open before what is queued behind it, whose enqueue can be the older event.
    const bool queued = event->kind == EventKind::kEnqueue;
    if (begins && !(queued && open && open->kind == EventKind::kStart)) open = *event;
  }
  return open;
}

}  // namespace lockstep::journal
