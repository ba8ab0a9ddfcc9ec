// What a mismatch that let its ranks pass may have led to. Three things can follow from it: a rank
// takes what it got for the answer to another question, data that are still on their way meet a
// later call, and the ranks' programs are out of step by one call from there on.
#include <algorithm>
#include <cstddef>
#include <iterator>

#include "core/verdict/finders/find.h"
#include "core/verdict/rank_view.h"

namespace lockstep::verdict::finders {
namespace {

using CalledEvents = std::vector<const JournalEvent*>;

bool AnyOther(const Mismatch& mismatch, auto differs) {
  const JournalEvent& first = *mismatch.parties.front().event;
  return std::any_of(mismatch.parties.begin() + 1, mismatch.parties.end(),
                     [&](const Mismatch::Party& party) { return differs(first, *party.event); });
}

bool SomebodyLeft(const Situation& situation, const Mismatch& mismatch) {
  return std::ranges::any_of(mismatch.parties, [&](const Mismatch::Party& party) {
    return std::ranges::any_of(party.members, [&](std::size_t member) {
      return EventAt(situation.views[member], mismatch.group, mismatch.sequence,
                     mismatch.case_index)
                 ->kind == EventKind::kEnd;
    });
  });
}

// What a party's ranks entered from the position on, as far as the furthest of them came.
CalledEvents CallsFrom(const Situation& situation, const Mismatch& mismatch,
                       const Mismatch::Party& party) {
  const auto track_of = [&](std::size_t member) {
    return situation.views[member].On(mismatch.group);
  };
  const std::size_t furthest = *std::ranges::max_element(
      party.members,
      [&](std::size_t a, std::size_t b) { return track_of(a)->started < track_of(b)->started; });
  const Track& track = *track_of(furthest);
  const auto& events = situation.views[furthest].evidence->journal.events;
  CalledEvents calls;
  for (std::size_t i = track.begin; i < events.size(); ++i) {
    const JournalEvent& event = events[i];
    const bool next = IsOn(track, event) && event.sequence == mismatch.sequence + calls.size();
    if (next && event.sequence < track.started) calls.push_back(&event);
  }
  return calls;
}

// As calls of one program are, or both sides of a message.
bool Meets(const JournalEvent& a, const JournalEvent& b) {
  if (!collective::IsMessage(a.collective)) return SameInvocation(a, b);
  return a.type == b.type && a.count == b.count;
}

// The one is the other with a call more in front.
bool HasOneMore(const CalledEvents& one, const CalledEvents& other) {
  if (one.size() < 2 || other.empty()) return false;
  const auto end = std::min(one.end(), one.begin() + 1 + std::ssize(other));
  return std::equal(one.begin() + 1, end, other.begin(),
                    [](const auto* a, const auto* b) { return Meets(*a, *b); });
}

// One party called one operation more than the other: from there on each call meets the next one.
// Where the end is no such meeting, the others did not come to the last call of that party.
bool OutOfStep(const Situation& situation, const Mismatch& mismatch, bool meets) {
  const CalledEvents a = CallsFrom(situation, mismatch, mismatch.parties[0]);
  const CalledEvents b = CallsFrom(situation, mismatch, mismatch.parties[1]);
  return ((meets || a.size() >= b.size()) && HasOneMore(a, b)) ||
         ((meets || b.size() >= a.size()) && HasOneMore(b, a));
}

bool All(const Situation& situation, const std::vector<int>& ranks, auto holds) {
  return std::ranges::all_of(situation.views, [&](const RankView& view) {
    return !std::ranges::binary_search(ranks, view.rank()) || holds(view);
  });
}

bool EndedInACall(const RankView& view) {
  return view.open != nullptr || FirstErrorOf(view) != nullptr;
}

// Ranks ended by themselves, not in order.
bool EndedRanks(const Situation& situation, const Finding& end) {
  const FindingCause& cause = end.cause;
  return cause == Cause::kRankFailed || cause == Cause::kInitFailure ||
         cause == Cause::kRankCrashed ||
         (cause == Cause::kRankExited && !All(situation, end.culprits, FinishedInOrder));
}

}  // namespace

bool MayFollow(const Situation& situation, const Mismatch& mismatch, const Finding& end) {
  const FindingCause& cause = end.cause;
  // CalledEvents that differ and are queued behind a ring show how the order came about.
  if (!SomebodyLeft(situation, mismatch))
    return cause == Cause::kOrderInversion || cause == Cause::kUnknown;
  if (cause == Cause::kRankKilled || cause == Cause::kRankStopped) return false;
  // Beside posted calls silence tells little.
  const bool vague = cause == Cause::kUnknown || (situation.nonblocking_calls && !end.proved);
  if (vague || AnyOther(mismatch, DifferInPurpose)) return true;
  if (cause == Cause::kRankBusy) return false;  // in no call
  const bool data_left = AnyOther(mismatch, [&](const JournalEvent& a, const JournalEvent& b) {
    return MayLeaveData(situation.semantics, OperationOf(a), OperationOf(b));
  });
  if (cause == Cause::kTransportStall) return data_left;
  if (EndedRanks(situation, end)) return data_left && All(situation, end.culprits, EndedInACall);
  const bool meets = cause.info().blame == Blame::kCalls;
  return (!meets && data_left) || OutOfStep(situation, mismatch, meets);
}

}  // namespace lockstep::verdict::finders
