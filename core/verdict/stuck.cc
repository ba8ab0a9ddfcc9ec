// The wait-for graph over ranks and communicators. A rank in an operation waits for every member of
// its communicator that has not entered it; in a broadcast or reduce only for whom it certainly
// needs (semantics.h). Nobody is taken to be stuck who could still be freed:
// first all that wait are in doubt, then who waits for nobody in doubt is freed, until nothing
// changes. Who is left waits for ever.
#include "core/verdict/stuck.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <unordered_map>

namespace lockstep::verdict {
namespace {

constexpr std::uint64_t kAnyFar = std::numeric_limits<std::uint64_t>::max();

struct Member {
  std::uint64_t position = 0;
  std::size_t index = 0;
  auto operator<=>(const Member&) const = default;
};

// One group in the search: both lists ascend, and what is before the cursors is settled.
struct Front {
  std::vector<Member> in_doubt;  // who may never come; position: first operation not entered
  std::vector<Member> waiting;   // position: the operation it waits in
  std::size_t next_in_doubt = 0;
  std::size_t next_waiting = 0;
  // Waiting for their root alone, those that are still in doubt.
  struct Child {
    std::size_t index = 0;
    std::size_t root = 0;
  };
  std::vector<Child> children;
};

class Search {
 public:
  Search(const Situation& situation, const std::vector<Mismatch>& mismatches, bool one_stream)
      : situation_(situation), one_stream_(one_stream), fronts_(situation.groups.size()) {
    const std::size_t ranks = situation.views.size();
    doubtful_.resize(ranks);
    pinned_.resize(ranks);
    needs_.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      if (Waits(i) && CanTell(i, mismatches)) needs_[i] = NeedsOfView(i);
      doubtful_[i] = IsGone(View(i)) || (Waits(i) && needs_[i].what != Needs::kNobody);
    }
    for (const Mismatch& mismatch : mismatches) Pin(mismatch);
    for (std::size_t g = 0; g < fronts_.size(); ++g) Fill(g);
  }

  Stuck Run() {
    // A freed rank may have been what any group waited for. Every round but the last frees one.
    bool freed = true;
    while (freed) {
      freed = false;
      for (std::size_t g = 0; g < fronts_.size(); ++g) freed = Free(g) || freed;
    }
    return Conclude();
  }

 private:
  const RankView& View(std::size_t i) const { return situation_.views[i]; }
  // Only one that the library has really begun waits for peers; before, its stream does. Whoever
  // makes non-blocking calls may do something else meanwhile.
  bool Waits(std::size_t i) const {
    const RankView& view = View(i);
    return !situation_.nonblocking_calls && OwesProgress(view) && view.waits_in_group() &&
           situation_.GroupAt(view.open_group).aligned &&
           view.On(view.open_group)->started > view.open->sequence;
  }

  // Where a library let calls that differ pass, or may have, and does not match calls by position,
  // the positions behind that do not tell which calls meet.
  bool CanTell(std::size_t i, const std::vector<Mismatch>& mismatches) const {
    if (situation_.semantics.matching == Matching::kPosition) return true;
    const RankView& view = View(i);
    return std::ranges::none_of(mismatches, [&](const Mismatch& mismatch) {
      const bool counted = mismatch.in_step && mismatch.effect == Effect::kWrongData;
      return !counted && mismatch.effect != Effect::kStops && view.waits_in(mismatch.group) &&
             view.open->sequence >= mismatch.sequence;
    });
  }

  struct NeedsAndRoot {
    Needs what = Needs::kNobody;
    std::size_t root = 0;  // kRoot
  };
  NeedsAndRoot NeedsOfView(std::size_t i) const {
    const RankView& view = View(i);
    const Group& group = situation_.GroupAt(view.open_group);
    const std::size_t size = group.ranks.empty() ? group.members.size() : group.ranks.size();
    const auto root = RootIn(situation_, view.open_group, view.open->root);
    const Needs needs =
        NeedsOf(situation_.semantics, OperationOf(*view.open), root == i, static_cast<int>(size));
    if (needs != Needs::kRoot) return {needs};
    return root ? NeedsAndRoot{needs, *root} : NeedsAndRoot{};
  }

  void Pin(const Mismatch& mismatch) {
    if (mismatch.effect != Effect::kStops) return;
    std::unordered_map<std::size_t, std::size_t> party_of;
    for (std::size_t p = 0; p < mismatch.parties.size(); ++p) {
      for (const std::size_t i : mismatch.parties[p].members) party_of.emplace(i, p);
    }
    for (const auto& [i, party] : party_of) {
      if (!Waits(i) || !View(i).waits_in(mismatch.group)) continue;
      if (View(i).open->sequence != mismatch.sequence) continue;
      // It certainly needs a rank that calls something else there.
      const auto root = party_of.find(needs_[i].root);
      const bool other_root = root != party_of.end() && root->second != party;
      if (needs_[i].what != Needs::kAll && (needs_[i].what != Needs::kRoot || !other_root))
        continue;
      const std::size_t peer = mismatch.parties[party == 0 ? 1 : 0].members.front();
      pinned_[i] = static_cast<std::int32_t>(peer) + 1;
    }
  }

  void Fill(std::size_t g) {
    const int group = static_cast<int>(g);
    Front& front = fronts_[g];
    for (const std::size_t i : situation_.groups[g].members) {
      if (!doubtful_[i]) continue;
      const RankView& view = View(i);
      const bool here = view.waits_in(group);
      if (!IsGone(view) && here && needs_[i].what == Needs::kRoot) {
        front.children.push_back({i, needs_[i].root});
      } else if (!IsGone(view) && here) {
        front.waiting.push_back({view.open->sequence, i});
      }
      // Unless all is on one stream, a rank that waits elsewhere may still come here.
      if (!IsGone(view) && !here && !one_stream_) continue;
      front.in_doubt.push_back({FirstNotEntered(view, group), i});
    }
    std::ranges::sort(front.in_doubt);
    std::ranges::sort(front.waiting);
  }

  static std::uint64_t FirstNotEntered(const RankView& view, int group) {
    const Track* track = view.On(group);
    // What the ring of a journal lost proves nothing.
    if (track == nullptr) return view.complete() ? 0 : kAnyFar;
    return IsGone(view) ? track->next : track->started;
  }

  // First operation of the group that somebody in doubt has not entered.
  std::uint64_t Limit(Front& front) const {
    while (front.next_in_doubt < front.in_doubt.size() &&
           !doubtful_[front.in_doubt[front.next_in_doubt].index]) {
      ++front.next_in_doubt;
    }
    return front.next_in_doubt < front.in_doubt.size()
               ? front.in_doubt[front.next_in_doubt].position
               : kAnyFar;
  }

  bool Free(std::size_t g) {
    Front& front = fronts_[g];
    const std::uint64_t limit = Limit(front);
    bool freed = false;
    for (; front.next_waiting < front.waiting.size() &&
           front.waiting[front.next_waiting].position < limit;
         ++front.next_waiting) {
      const std::size_t i = front.waiting[front.next_waiting].index;
      if (pinned_[i] != 0) continue;
      doubtful_[i] = false;
      freed = true;
    }
    const auto comes = [&](const Front::Child& child) {
      if (pinned_[child.index] != 0) return false;
      return !doubtful_[child.root] || !WaitsForRoot(child);
    };
    for (const Front::Child& child : front.children) {
      if (!comes(child)) continue;
      doubtful_[child.index] = false;
      freed = true;
    }
    std::erase_if(front.children, [&](const Front::Child& c) { return !doubtful_[c.index]; });
    return freed;
  }

  bool WaitsForRoot(const Front::Child& child) const {
    const RankView& root = View(child.root);
    const int group = View(child.index).open_group;
    // Unless all is on one stream, a rank that waits elsewhere may still come here.
    if (!one_stream_ && !IsGone(root) && !root.waits_in(group)) return false;
    return FirstNotEntered(root, group) <= View(child.index).open->sequence;
  }

  Stuck Conclude() {
    Stuck stuck;
    const std::size_t ranks = situation_.views.size();
    stuck.ranks.resize(ranks);
    stuck.waits_for.assign(ranks, Stuck::kNobody);
    for (std::size_t i = 0; i < ranks; ++i) {
      if (!doubtful_[i] || IsGone(View(i))) continue;
      stuck.ranks[i] = true;
      const Front& front = fronts_[static_cast<std::size_t>(View(i).open_group)];
      stuck.waits_for[i] =
          pinned_[i] != 0 ? pinned_[i] - 1
          : needs_[i].what == Needs::kRoot
              ? static_cast<std::int32_t>(needs_[i].root)
              : static_cast<std::int32_t>(front.in_doubt[front.next_in_doubt].index);
    }
    FollowChains(stuck);
    return stuck;
  }

  // Every chain ends at a gone rank, at a mismatch, or in a ring; each rank is walked over once.
  void FollowChains(Stuck& stuck) const {
    constexpr std::int32_t kUnvisited = -2, kOnPath = -3;
    stuck.root.assign(stuck.ranks.size(), kUnvisited);
    for (std::size_t start = 0; start < stuck.ranks.size(); ++start) {
      std::vector<std::size_t> path;
      std::size_t at = start;
      while (stuck.ranks[at] && pinned_[at] == 0 && stuck.root[at] == kUnvisited) {
        stuck.root[at] = kOnPath;
        path.push_back(at);
        at = static_cast<std::size_t>(stuck.waits_for[at]);
      }
      std::int32_t root = Stuck::kNobody;
      if (IsGone(View(at))) {
        root = static_cast<std::int32_t>(at);
      } else if (stuck.root[at] == kOnPath) {
        if (stuck.cycle.empty()) {
          stuck.cycle.assign(std::ranges::find(path, at), path.end());
        }
      } else if (stuck.root[at] != kUnvisited) {
        root = stuck.root[at];
      }
      for (const std::size_t i : path) stuck.root[i] = root;
      if (stuck.root[start] == kUnvisited) stuck.root[start] = Stuck::kNobody;
    }
  }

  const Situation& situation_;
  bool one_stream_;
  std::vector<Front> fronts_;
  std::vector<bool> doubtful_;
  std::vector<NeedsAndRoot> needs_;
  std::vector<std::int32_t> pinned_;  // 0: not; else 1 + a rank whose call differs
};

// It made no communicator of the world yet.
bool IsEarly(const RankView& view) {
  return view.tracks.empty() && view.complete() &&
         (view.phase == Phase::kStart || view.phase == Phase::kConnect);
}

// Making the communicator of the world takes all of its ranks.
void AddConnecting(const Situation& situation, Stuck& stuck) {
  const auto& views = situation.views;
  const auto missing = std::ranges::find_if(
      views, [](const RankView& view) { return IsGone(view) && IsEarly(view); });
  if (missing == views.end()) return;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!OwesProgress(views[i]) || !IsEarly(views[i]) || views[i].phase != Phase::kConnect) {
      continue;
    }
    stuck.ranks[i] = true;
    stuck.waits_for[i] = stuck.root[i] = static_cast<std::int32_t>(missing - views.begin());
  }
}

}  // namespace

Stuck FindStuck(const Situation& situation, const std::vector<Mismatch>& mismatches,
                bool one_stream) {
  Stuck stuck = Search(situation, mismatches, one_stream).Run();
  AddConnecting(situation, stuck);
  return stuck;
}

}  // namespace lockstep::verdict
