// One rank as its journal shows it: what it is in, and how far it came on every communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/journal.h"
#include "core/verdict/evidence.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict {

// The communicator of all ranks.
inline constexpr std::uint16_t kWorld = 0;
// Group of a communicator of which nobody said who belongs to it.
inline constexpr int kUnknownGroup = -1;

// How far a rank came with one operation.
enum class CallStep : std::uint8_t { kNotEntered, kEnqueued, kStarted, kLeft };

// One rank on one communicator: its newest life, for numbers begin again with every new one.
struct Track {
  std::uint16_t communicator = kWorld;
  bool making = false;          // of the communicators that are made out of it, not of its calls
  int group = kUnknownGroup;    // index of Situation::groups
  bool point_to_point = false;  // sends and receives count too: positions of ranks differ
  int lives = 0;                // begun in sight of the journal
  std::size_t begin = 0;        // first event of this life in the journal
  std::uint64_t next = 0;       // first operation that it has not completed
  std::uint64_t started = 0;    // operations below were started
  std::uint64_t queued = 0;     // operations below were put on a stream
  // Newest event of its oldest open operation, or nullptr.
  const JournalEvent* open = nullptr;

  CallStep StepAt(std::uint64_t sequence) const;
};

struct RankView {
  const RankEvidence* evidence = nullptr;
  // Newest event of the invocation it is in, the oldest that is open in this case; or nullptr.
  const JournalEvent* open = nullptr;
  int open_group = kUnknownGroup;                 // whose operation that is
  const JournalEvent* last = nullptr;             // newest event of all, or nullptr
  const JournalEvent* last_collective = nullptr;  // newest event of a collective, or nullptr
  // The first error of a collective in this case, unless a later call of that communicator ended
  // well. Else nullptr.
  const JournalEvent* first_error = nullptr;
  // The newest thing that it did with the library: take part in the making of a communicator, which
  // failed on it. Else nullptr.
  const JournalEvent* failed_split = nullptr;
  Phase phase = Phase::kStart;
  bool announced_exit = false;  // a kExit event: it left, or is about to leave, on its own
  std::vector<Track> tracks;

  int rank() const { return evidence->rank; }
  bool running() const { return evidence->state == ProcessState::kRunning; }
  bool complete() const { return evidence->journal.missed == 0; }
  bool newest_collective_failed() const;
  // It, or its library, reported an error.
  bool reported_error() const;
  // It is in an operation of a communicator whose members are known.
  bool waits_in_group() const { return open != nullptr && open_group != kUnknownGroup; }
  bool waits_in(int group) const { return open != nullptr && open_group == group; }
  // nullptr: its journal has nothing of this group.
  const Track* On(int group) const;
  // That the event is on, or nullptr.
  const Track* TrackOf(const JournalEvent& event) const;
};

using Views = std::vector<const RankView*>;
std::vector<int> RanksOf(const Views& views);
Views ViewsAt(const std::vector<RankView>& views, const std::vector<std::size_t>& indices);
// Those for which it holds, in their order.
template <typename Predicate>
Views ViewsWhere(const std::vector<RankView>& views, Predicate holds) {
  Views those;
  for (const RankView& view : views) {
    if (holds(view)) those.push_back(&view);
  }
  return those;
}

bool IsCollective(const JournalEvent& event);
// It is of the track: a call on its communicator, or the making of one out of it.
bool IsOn(const Track& track, const JournalEvent& event);
// What a finding is about: the making of a communicator is no operation of one.
std::optional<JournalEvent> OperationIn(const JournalEvent* open);

// Linear in the journal. Groups are not filled in. `evidence` outlives the view.
RankView ViewOf(const RankEvidence& evidence);

// The rank's newest event of operation `sequence` of the group in case `case_index`, or nullptr.
const JournalEvent* EventAt(const RankView& view, int group, std::uint64_t sequence,
                            std::uint32_t case_index);

// "all_reduce 50 (…) f32 x 256 sum", "checking results after all_reduce 49 (…)", "connecting". A
// headline has NameOfInvocation for `call`: without arguments and positions.
using DescribeCall = std::string (*)(const JournalEvent&);
std::string WhereOf(const RankView& view, DescribeCall call = DescribeInvocation);
// The same as the end of a sentence: "in all_reduce 50 (…)", "while connecting".
std::string InOrWhile(const RankView& view, DescribeCall call = DescribeInvocation);

// "rank 1 (host node2, pid 4711)", "ranks 0 and 2-7 (host node2)": with what is known of the place.
std::string Who(const std::vector<const RankEvidence*>& ranks);
std::string Who(const Views& ranks);
// ": asleep in pause()", the beginning of what the operating system says of it; or "".
std::string SystemClauseBriefly(const RankView& view);

// The signals by which a process ends itself: SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL …
bool EndedBySelf(int signal);
// It, or its library, reported an error: alone, or before it exited because of that.
bool Failed(const RankView& view);
// The call that a rank failed in, or nullptr: what is queued behind it is open for ever, and never
// begins.
const JournalEvent* FailedCallOf(const RankView& view);
// It runs, owes progress, and nothing but silence can be held against it.
bool OwesProgress(const RankView& view);
// It left in order: exit code 0, announced, with no collective open.
bool FinishedInOrder(const RankView& view);
// Exited without an error of its own, ended by a signal or stopped.
bool IsDeparted(const RankView& view);
// Exited, ended by a signal, stopped or failed: it will do nothing more.
bool IsGone(const RankView& view);
// The first collective that reported an error; what was queued behind it never ran. What comes when
// the rank already leaves is a consequence of that. nullptr: none did.
const JournalEvent* FirstErrorOf(const RankView& view);
const JournalEvent* FirstErrorOf(const RankEvidence& evidence);
// "exited with code 9", "is stopped by SIGSTOP".
std::string FateOf(const RankView& view);
// All that a rank's error says is that a connection ended: its cause may be elsewhere.
bool IsEcho(std::string_view error);
// All that it says is that somebody did not come in time.
bool WaitedInVain(std::string_view error);
// One of two errors says more of its cause than the other.
bool SaysLess(std::string_view error, std::string_view than);

}  // namespace lockstep::verdict
