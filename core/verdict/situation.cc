// Makes the situation of all ranks: groups with their members, and the earliest position of each in
// which calls differ. Calls are compared by hash, so that it stays linear in the events.
#include "core/verdict/situation.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/base/random.h"
#include "core/journal/purpose.h"
#include "core/verdict/messages.h"

namespace lockstep::verdict {
namespace {

// Fills in whose communicator each track is. Linear but for ranks of many communicators.
void AssignGroups(Situation& situation, const Setting& setting) {
  std::unordered_map<int, std::size_t> index_of;
  if (!setting.groups.empty()) {
    for (std::size_t i = 0; i < situation.views.size(); ++i) {
      index_of.emplace(situation.views[i].rank(), i);
    }
  }
  Group world{.communicator = kWorld, .name = "world"};
  world.members.resize(situation.views.size());
  for (std::size_t i = 0; i < world.members.size(); ++i) world.members[i] = i;
  situation.groups.push_back(std::move(world));
  for (const CommunicatorGroup& given : setting.groups) {
    if (given.communicator == kWorld) continue;
    Group group{.communicator = given.communicator, .name = given.name};
    group.ranks = given.ranks;
    for (const int rank : given.ranks) {
      const auto found = index_of.find(rank);
      if (found != index_of.end()) group.members.push_back(found->second);
    }
    situation.groups.push_back(std::move(group));
  }
}

// For every group whose members made communicators out of it, one of these makings.
void AddMakings(Situation& situation) {
  std::unordered_set<std::uint16_t> split;
  for (const RankView& view : situation.views) {
    for (const Track& track : view.tracks) {
      if (track.making) split.insert(track.communicator);
    }
  }
  const std::size_t groups = situation.groups.size();
  for (std::size_t i = 0; i < groups; ++i) {
    if (!split.contains(situation.groups[i].communicator)) continue;
    Group making = situation.groups[i];
    making.making = true;
    situation.groups.push_back(std::move(making));
  }
}

// A rank whose journal shows an older life of the communicator than another's is on none that the
// others are on. Journals that lost events cannot count lives.
void JoinTracks(Situation& situation, int index) {
  Group& group = situation.groups[static_cast<std::size_t>(index)];
  const auto track_of = [&](std::size_t member) -> Track* {
    for (Track& track : situation.views[member].tracks) {
      if (track.communicator == group.communicator && track.making == group.making) return &track;
    }
    return nullptr;
  };
  int lives = 0;
  for (const std::size_t member : group.members) {
    const Track* track = track_of(member);
    if (track != nullptr && situation.views[member].complete())
      lives = std::max(lives, track->lives);
  }
  for (const std::size_t member : group.members) {
    Track* track = track_of(member);
    if (track == nullptr) continue;
    if (situation.views[member].complete() && track->lives < lives) continue;
    track->group = index;
    if (track->point_to_point) group.aligned = false;
  }
}

std::uint64_t KeyOf(const JournalEvent& event) {
  return event.sequence ^ (std::uint64_t{event.case_index} << 40);
}

using Positions = std::unordered_set<std::uint64_t>;  // keys

// Earliest position of the group where an event is not `alike` the first one seen there; of these
// positions alone, if some are given.
template <typename Alike>
const JournalEvent* FirstDifference(const Situation& situation, int index, Alike alike,
                                    const Positions* among = nullptr) {
  const Group& group = situation.GroupAt(index);
  std::unordered_map<std::uint64_t, const JournalEvent*> seen;
  const JournalEvent* earliest = nullptr;
  for (const std::size_t member : group.members) {
    const RankView& view = situation.views[member];
    const Track* track = view.On(index);
    if (track == nullptr) continue;
    const auto& events = view.evidence->journal.events;
    for (std::size_t i = track->begin; i < events.size(); ++i) {
      const JournalEvent& event = events[i];
      // Start and end repeat what was enqueued; histories from elsewhere may have starts only.
      if (event.communicator != track->communicator ||
          (event.kind != EventKind::kEnqueue && event.kind != EventKind::kStart)) {
        continue;
      }
      if (earliest != nullptr && event.sequence >= earliest->sequence) continue;
      if (among != nullptr && !among->contains(KeyOf(event))) continue;
      const auto [known, is_new] = seen.try_emplace(KeyOf(event), &event);
      if (is_new || known->second->case_index != event.case_index) continue;
      if (!alike(*known->second, event)) earliest = &event;
    }
  }
  return earliest;
}

// Equal for the same invocation.
std::uint64_t HashOf(const JournalEvent& event) {
  const auto kind = static_cast<std::uint64_t>(event.collective);
  if (event.collective == Collective::kBarrier) return kind;
  const collective::CollectiveInfo& info = collective::InfoOf(event.collective);
  const std::uint64_t root = info.rooted ? static_cast<std::uint32_t>(event.root) : 0;
  const std::uint64_t reduction = info.reduces ? static_cast<std::uint64_t>(event.reduction) : 0;
  return Mix64(
      static_cast<std::uint64_t>(event.count) ^
      Mix64(root << 24 | reduction << 16 | static_cast<std::uint64_t>(event.type) << 8 | kind));
}

std::vector<Mismatch::Party> PartiesAt(const Situation& situation, int index,
                                       const JournalEvent& position) {
  std::vector<Mismatch::Party> parties;
  // By what is called: as many parties as ranks are possible, so they are found by hash.
  std::unordered_multimap<std::uint64_t, std::size_t> by_call;
  for (const std::size_t member : situation.GroupAt(index).members) {
    const JournalEvent* event =
        EventAt(situation.views[member], index, position.sequence, position.case_index);
    if (event == nullptr) continue;
    const std::uint64_t hash = HashOf(*event);
    const auto [begin, end] = by_call.equal_range(hash);
    const auto known = std::find_if(begin, end, [&](const auto& entry) {
      return SameInvocation(*parties[entry.second].event, *event);
    });
    if (known == end) {
      by_call.emplace(hash, parties.size());
      parties.push_back({event, {member}});
    } else {
      parties[known->second].members.push_back(member);
    }
  }
  std::ranges::stable_sort(
      parties, [](const auto& a, const auto& b) { return a.members.size() > b.members.size(); });
  return parties;
}

// Stopped, or ended by a signal that is not its own doing: whatever it was in.
bool EndedFromOutside(const RankEvidence& evidence) {
  return evidence.state == ProcessState::kStopped ||
         (evidence.state == ProcessState::kSignalled && !EndedBySelf(evidence.signal));
}

// Whether one that has not come to a call has a reason of its own: it is gone, or in no call.
// Otherwise it waits somewhere for those that are there, or did until a connection ended.
bool StaysAway(const RankView& view, bool member) {
  if (FinishedInOrder(view)) return member;
  if (Failed(view) && IsEcho(view.evidence->error) && FirstErrorOf(view) != nullptr) return false;
  return IsGone(view) || (OwesProgress(view) && view.open == nullptr);
}

bool AnyStaysAway(const Situation& situation, int group,
                  const std::unordered_set<std::size_t>& came) {
  const auto& members = situation.GroupAt(group).members;
  if (came.size() == members.size()) return false;
  const std::unordered_set<std::size_t> all(members.begin(), members.end());
  for (std::size_t i = 0; i < situation.views.size(); ++i) {
    if (!came.contains(i) && StaysAway(situation.views[i], all.contains(i))) return true;
  }
  return false;
}

// Ranks are in it for ever, as far as rules and journals tell, or ended in it by themselves.
bool Holds(const Situation& situation, const Mismatch& mismatch) {
  std::unordered_set<std::size_t> came;
  bool inside = false;
  for (const Mismatch::Party& party : mismatch.parties) {
    for (const std::size_t i : party.members) {
      const RankView& view = situation.views[i];
      const EventKind kind =
          EventAt(view, mismatch.group, mismatch.sequence, mismatch.case_index)->kind;
      if (kind == EventKind::kEnd) came.insert(i);
      if (kind == EventKind::kEnd || kind == EventKind::kEnqueue) continue;
      if (EndedFromOutside(*view.evidence)) continue;
      // A connection that ended says only that somebody left.
      const bool ended = kind == EventKind::kError || IsGone(view);
      if (ended && !IsEcho(view.evidence->error)) return true;
      came.insert(i);
      inside = true;
    }
  }
  const bool stops = mismatch.effect == Effect::kStops;
  return inside && (stops || !AnyStaysAway(situation, mismatch.group, came));
}

std::optional<Mismatch> MismatchAt(const Situation& situation, int index,
                                   const JournalEvent* position) {
  if (position == nullptr) return std::nullopt;
  Mismatch mismatch{
      .group = index, .sequence = position->sequence, .case_index = position->case_index};
  mismatch.parties = PartiesAt(situation, index, *position);
  if (mismatch.parties.size() < 2) return std::nullopt;  // one rank that contradicts itself
  const Operation a = OperationOf(*mismatch.parties[0].event);
  const Operation b = OperationOf(*mismatch.parties[1].event);
  // The same call for different purposes: the library cannot know.
  mismatch.effect = SameCall(a, b) ? Effect::kWrongData : EffectOf(situation.semantics, a, b);
  // Who has posted the one may still post the other, and kinds meet in another order.
  if (situation.nonblocking_calls && mismatch.effect == Effect::kStops)
    mismatch.effect = Effect::kUndefined;
  mismatch.holds = Holds(situation, mismatch);
  mismatch.in_step = std::ranges::all_of(mismatch.parties, [&](const Mismatch::Party& party) {
    return CountedAlike(situation.semantics, a, OperationOf(*party.event));
  });
  return mismatch;
}

// Where the ranks of a group are now, or were when they failed.
Positions PositionsNow(const Situation& situation, int index) {
  Positions now;
  for (const std::size_t member : situation.GroupAt(index).members) {
    const RankView& view = situation.views[member];
    const Track* const track = view.On(index);
    if (track == nullptr) continue;
    if (track->open != nullptr) now.insert(KeyOf(*track->open));
    const JournalEvent* const failed = FirstErrorOf(view);
    if (failed != nullptr && IsOn(*track, *failed)) now.insert(KeyOf(*failed));
  }
  return now;
}

}  // namespace

Situation SituationOf(const std::vector<RankEvidence>& evidence, const Setting& setting) {
  Situation situation{.deadline_seconds = setting.deadline_seconds,
                      .semantics = SemanticsOf(setting.backend),
                      .one_stream = setting.one_stream,
                      .nonblocking_calls = setting.nonblocking_calls};
  situation.views.reserve(evidence.size());
  for (const RankEvidence& rank : evidence) situation.views.push_back(ViewOf(rank));
  AssignGroups(situation, setting);
  AddMakings(situation);
  for (std::size_t i = 0; i < situation.groups.size(); ++i) {
    JoinTracks(situation, static_cast<int>(i));
  }
  for (RankView& view : situation.views) {
    if (view.open == nullptr) continue;
    view.open_group = view.TrackOf(*view.open)->group;
  }
  return situation;
}

std::optional<std::size_t> RootIn(const Situation& situation, int group, int root) {
  const Group& of = situation.GroupAt(group);
  const auto place = static_cast<std::size_t>(root);
  if (root < 0 || (!of.ranks.empty() && place >= of.ranks.size())) return std::nullopt;
  const int rank = of.ranks.empty() ? root : of.ranks[place];
  const auto& views = situation.views;
  const auto likely = static_cast<std::size_t>(rank);
  if (likely < views.size() && views[likely].rank() == rank) return likely;
  const auto found = std::ranges::find(views, rank, &RankView::rank);
  if (found == views.end()) return std::nullopt;
  return static_cast<std::size_t>(found - views.begin());
}

Operation OperationOf(const JournalEvent& event) {
  return {.collective = event.collective,
          .type = event.type,
          .reduction = event.reduction,
          .count = event.count,
          .root = event.root};
}

bool DifferInPurpose(const JournalEvent& a, const JournalEvent& b) {
  if (a.value == b.value) return false;
  const Annotation x = journal::UnpackAnnotation(a.value);
  const Annotation y = journal::UnpackAnnotation(b.value);
  const auto says = [](Purpose p) { return p != Purpose::kNone && p != Purpose::kStep; };
  if (!says(x.purpose) || !says(y.purpose)) return false;
  const auto shadowed = [](Purpose p) {
    return p == Purpose::kJoinShadowBucket ? Purpose::kBucket : p;
  };
  return shadowed(x.purpose) != shadowed(y.purpose) || x.detail != y.detail;
}

bool SameInvocation(const JournalEvent& a, const JournalEvent& b) {
  return SameCall(OperationOf(a), OperationOf(b)) && !DifferInPurpose(a, b);
}

namespace {

// Messages from one rank to another that do not fit; nullptr: there are none.
struct UnfitMessages {
  const JournalEvent* first = nullptr;
  const JournalEvent* last = nullptr;
};

// In one pass: there may be as many lanes as pairs of ranks.
class MessageSearch {
 public:
  explicit MessageSearch(const Situation& situation) : situation_(situation) {
    for (const RankView& view : situation.views) Add(view);
  }
  const std::map<int, UnfitMessages>& unfit() const { return unfit_; }  // by group

 private:
  void Add(const RankView& view) {
    std::unordered_map<std::uint16_t, const Track*> lanes;
    for (const Track& track : view.tracks) {
      const bool lane = track.communicator >= kFirstLane && track.group != kUnknownGroup;
      if (lane && !track.making) lanes.emplace(track.communicator, &track);
    }
    const auto& events = view.evidence->journal.events;
    for (std::size_t i = 0; i < events.size() && !lanes.empty(); ++i) {
      const EventKind kind = events[i].kind;
      if (kind != EventKind::kEnqueue && kind != EventKind::kStart) continue;
      const auto lane = lanes.find(events[i].communicator);
      if (lane != lanes.end() && i >= lane->second->begin) Compare(lane->second->group, events[i]);
    }
  }

  void Compare(int group, const JournalEvent& event) {
    const auto [known, is_new] = seen_[group].try_emplace(KeyOf(event), &event);
    const JournalEvent& other = *known->second;
    if (is_new || other.collective == event.collective || other.case_index != event.case_index)
      return;
    const bool fits = FitsMessage(situation_.semantics, OperationOf(other), OperationOf(event));
    if (fits && !LeavesWrongData(group, other, event)) return;
    UnfitMessages& found = unfit_[group];
    if (found.first == nullptr || event.sequence < found.first->sequence) found.first = &event;
    if (found.last == nullptr || event.sequence > found.last->sequence) found.last = &event;
  }

  // It is shorter than its receive, and a check found what that holds wrong.
  bool LeavesWrongData(int group, const JournalEvent& a, const JournalEvent& b) const {
    if (a.count == b.count) return false;
    const JournalEvent& receive = a.collective == Collective::kRecv ? a : b;
    const std::size_t receiver = situation_.GroupAt(group).members.back();
    const std::int64_t iteration = journal::UnpackAnnotation(receive.value).iteration;
    return situation_.views[receiver].evidence->wrong_data.starts_with(
        collective::DescribeIn(iteration, OperationOf(receive)) + ":");
  }

  const Situation& situation_;
  std::unordered_map<int, std::unordered_map<std::uint64_t, const JournalEvent*>> seen_;
  std::map<int, UnfitMessages> unfit_;
};

void AddMessages(const Situation& situation, std::vector<Mismatch>& mismatches) {
  const MessageSearch search(situation);
  for (const auto& [group, unfit] : search.unfit()) {
    const std::optional<Mismatch> first = MismatchAt(situation, group, unfit.first);
    if (first) mismatches.push_back(*first);
    if (!first || first->holds || unfit.last->sequence == first->sequence) continue;
    const std::optional<Mismatch> last = MismatchAt(situation, group, unfit.last);
    if (last && last->holds) mismatches.push_back(*last);
  }
}

}  // namespace

std::vector<Mismatch> FindMismatches(const Situation& situation) {
  std::vector<Mismatch> mismatches;
  const auto counted_alike = [&](const JournalEvent& a, const JournalEvent& b) {
    return SameCall(OperationOf(a), OperationOf(b)) ||
           CountedAlike(situation.semantics, OperationOf(a), OperationOf(b));
  };
  for (std::size_t i = 0; i < situation.groups.size(); ++i) {
    const int index = static_cast<int>(i);
    const Group& group = situation.groups[i];
    if (!group.aligned || group.making || group.communicator >= kFirstLane) continue;
    const std::optional<Mismatch> first =
        MismatchAt(situation, index, FirstDifference(situation, index, SameInvocation));
    if (!first) continue;
    mismatches.push_back(*first);
    if (first->holds || !first->in_step) continue;
    const Positions now = PositionsNow(situation, index);
    const JournalEvent* later = FirstDifference(situation, index, SameInvocation, &now);
    // Behind calls that the library does not count alike, positions do not tell what meets.
    const JournalEvent* const apart = FirstDifference(situation, index, counted_alike);
    if (apart != nullptr && (later == nullptr || apart->sequence < later->sequence)) later = apart;
    const std::optional<Mismatch> next = MismatchAt(situation, index, later);
    if (next && (next->holds || !next->in_step)) mismatches.push_back(*next);
  }
  AddMessages(situation, mismatches);
  return mismatches;
}

}  // namespace lockstep::verdict
