// The wait-for graph over ranks and communicators. A rank in an operation waits for every member of
// its communicator that has not entered it; in a broadcast or reduce only for whom it certainly
// needs (semantics.h). Nobody is taken to be stuck who could still be freed (wait_graph.h).
#include "core/verdict/stuck.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <span>
#include <unordered_map>

#include "core/verdict/wait_graph.h"

namespace lockstep::verdict {
namespace {

constexpr std::uint64_t kAnyFar = std::numeric_limits<std::uint64_t>::max();

struct Member {
  std::uint64_t position = 0;  // first operation that it has not entered
  std::size_t index = 0;
  auto operator<=>(const Member&) const = default;
};

// Of a group: who may never come, in the order of their positions.
using InDoubt = std::vector<Member>;

class Search {
 public:
  Search(const Situation& situation, const std::vector<Mismatch>& mismatches, bool one_stream)
      : situation_(situation),
        one_stream_(one_stream),
        graph_(situation.views.size()),
        in_doubt_(situation.groups.size()) {
    const std::size_t ranks = situation.views.size();
    waits_.resize(ranks);
    pinned_.resize(ranks);
    needs_.resize(ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      if (Waits(i) && CanTell(i, mismatches)) needs_[i] = NeedsOfView(i);
      waits_[i] = Waits(i) && needs_[i].what != Needs::kNobody;
      if (IsGone(View(i))) graph_.NeverGoesOn(i);
    }
    for (const Mismatch& mismatch : mismatches) Pin(mismatch);
    for (std::size_t g = 0; g < in_doubt_.size(); ++g) Fill(g);
  }

  Stuck Run() const { return Conclude(graph_.FindStuck()); }

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

  // Who waits in the group, in the graph. All members that have not entered an operation hold up
  // whoever waits in it: so a node stands for the first of them, and each next one for one more.
  void Fill(std::size_t g) {
    const int group = static_cast<int>(g);
    InDoubt& in_doubt = in_doubt_[g];
    std::vector<std::size_t> waiting;
    for (const std::size_t i : situation_.groups[g].members) {
      const bool gone = IsGone(View(i));
      const bool here = !gone && waits_[i] && View(i).waits_in(group);
      if (here) waiting.push_back(i);
      // Unless all is on one stream, a rank that waits elsewhere may still come here.
      if (gone || here || (waits_[i] && one_stream_)) {
        in_doubt.push_back({FirstNotEntered(View(i), group), i});
      }
    }
    if (waiting.empty()) return;
    std::ranges::sort(in_doubt);
    WaitGraph::Nodes up_to;
    for (const Member& member : in_doubt) {
      const WaitGraph::Node node = graph_.Add();
      const WaitGraph::Node both[] = {member.index, up_to.empty() ? node : up_to.back()};
      graph_.WaitForAll(node, std::span(both).first(up_to.empty() ? 1 : 2));
      up_to.push_back(node);
    }
    for (const std::size_t i : waiting) Wait(i, in_doubt, up_to);
  }

  void Wait(std::size_t i, const InDoubt& in_doubt, const WaitGraph::Nodes& up_to) {
    if (pinned_[i] != 0) return graph_.NeverGoesOn(i);
    if (needs_[i].what == Needs::kRoot) {
      if (WaitsForRoot(i)) graph_.WaitForAll(i, std::span(&needs_[i].root, 1));
      return;
    }
    const auto come =
        std::ranges::upper_bound(in_doubt, View(i).open->sequence, {}, &Member::position);
    const auto missing = static_cast<std::size_t>(come - in_doubt.begin());
    if (missing > 0) graph_.WaitForAll(i, std::span(&up_to[missing - 1], 1));
  }

  static std::uint64_t FirstNotEntered(const RankView& view, int group) {
    const Track* track = view.On(group);
    // What the ring of a journal lost proves nothing.
    if (track == nullptr) return view.complete() ? 0 : kAnyFar;
    return IsGone(view) ? track->next : track->started;
  }

  bool WaitsForRoot(std::size_t i) const {
    const RankView& root = View(needs_[i].root);
    const int group = View(i).open_group;
    // Unless all is on one stream, a rank that waits elsewhere may still come here.
    if (!one_stream_ && !IsGone(root) && !root.waits_in(group)) return false;
    return FirstNotEntered(root, group) <= View(i).open->sequence;
  }

  std::int32_t FirstStuck(const InDoubt& in_doubt, const std::vector<bool>& stuck) const {
    const auto first =
        std::ranges::find_if(in_doubt, [&](const Member& member) { return stuck[member.index]; });
    return first == in_doubt.end() ? Stuck::kNobody : static_cast<std::int32_t>(first->index);
  }

  Stuck Conclude(const std::vector<bool>& never) const {
    Stuck stuck;
    const std::size_t ranks = situation_.views.size();
    stuck.ranks.resize(ranks);
    stuck.waits_for.assign(ranks, Stuck::kNobody);
    std::vector<std::int32_t> first;
    for (const InDoubt& in_doubt : in_doubt_) first.push_back(FirstStuck(in_doubt, never));
    for (std::size_t i = 0; i < ranks; ++i) {
      if (!never[i] || IsGone(View(i))) continue;
      stuck.ranks[i] = true;
      stuck.waits_for[i] = pinned_[i] != 0 ? pinned_[i] - 1
                           : needs_[i].what == Needs::kRoot
                               ? static_cast<std::int32_t>(needs_[i].root)
                               : first[static_cast<std::size_t>(View(i).open_group)];
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
  WaitGraph graph_;
  std::vector<InDoubt> in_doubt_;  // by group
  std::vector<bool> waits_;        // for peers
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
