// Where the dumps of a process group end. Calls that are over on every rank that made them pass
// only if every rank made them: a root ends a broadcast before others come, and gloo's list does
// not tell a message that failed from one that ended.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/flight/findings.h"
#include "core/flight/mismatch.h"

namespace lockstep::flight {
namespace {

// The newest call of a team, by whichever member, and how far each dump came.
struct End {
  std::size_t dump = 0;
  const FlightCall* newest = nullptr;
  std::map<std::size_t, std::uint64_t> reached = {};
};

std::vector<End> EndsOf(const FlightView& view) {
  std::vector<End> ends(view.job.teams.size());
  for (std::size_t d = 0; d < view.job.dumps.size(); ++d) {
    for (const FlightCall& call : view.job.dumps[d].calls) {
      const FlightTeam& team = view.job.TeamOf(d, call);
      if (call.point_to_point || !team.aligned) continue;
      // A dump that is damaged, or of another job, may show calls of groups without its rank.
      if (!std::ranges::binary_search(team.ranks, view.job.dumps[d].rank)) continue;
      End& end = ends[static_cast<std::size_t>(view.TeamIndex(d, call))];
      // Threads that call at once may record two calls the wrong way round.
      std::uint64_t& reached = end.reached[d];
      reached = std::max(reached, call.sequence);
      if (end.newest != nullptr && end.newest->sequence >= call.sequence) continue;
      end.dump = d;
      end.newest = &call;
    }
  }
  return ends;
}

void CompareCollectives(const FlightView& view, std::vector<std::string>& notes) {
  const std::vector<End> ends = EndsOf(view);
  for (std::size_t t = 0; t < ends.size(); ++t) {
    const End& end = ends[t];
    if (end.newest == nullptr) continue;
    std::vector<int> over, behind;
    for (const int rank : view.job.teams[t].ranks) {
      const std::size_t dump = view.DumpOf(rank);
      if (dump == view.job.dumps.size()) continue;
      const auto reached = end.reached.find(dump);
      const bool called = reached != end.reached.end();
      if (called && reached->second == end.newest->sequence) {
        over.push_back(rank);
      } else if (called || view.job.dumps[dump].missed == 0) {  // else its ring may have lost it
        behind.push_back(rank);
      }
    }
    if (behind.empty()) continue;
    notes.push_back(
        fmt::format("{} {} not called {}, which is over on {}: who hangs, if anyone "
                    "does, is not known",
                    FormatRanks(behind), Verb(behind, "has", "have"),
                    view.Named(end.dump, *end.newest), FormatRanks(over)));
  }
}

// Batches do not say with whom, and a ring may have lost messages.
void CompareMessages(const FlightView& view, std::vector<std::string>& notes) {
  const FlightJob& job = view.job;
  std::map<std::tuple<std::int32_t, int, int>, int> sends;  // less receives, by sender and receiver
  std::set<std::pair<std::int32_t, int>> untold;
  for (std::size_t d = 0; d < job.dumps.size(); ++d) {
    const int rank = job.dumps[d].rank;
    for (const FlightCall& call : job.dumps[d].calls) {
      if (!call.point_to_point) continue;
      const FlightTeam& team = job.TeamOf(d, call);
      const std::int32_t index = view.TeamIndex(d, call);
      const auto place = static_cast<std::size_t>(call.peer);
      if (call.peer < 0 || place >= team.ranks.size() || !team.told) {
        untold.emplace(index, rank);
      } else if (call.kind == FlightKind::kSend) {
        ++sends[{index, rank, team.ranks[place]}];
      } else {
        --sends[{index, team.ranks[place], rank}];
      }
    }
  }
  const auto whole = [&](std::int32_t team, int rank) {
    const std::size_t dump = view.DumpOf(rank);
    return dump < job.dumps.size() && job.dumps[dump].missed == 0 && !untold.contains({team, rank});
  };
  for (const auto& [of, more] : sends) {
    const auto [team, sender, receiver] = of;
    if (more == 0 || !whole(team, sender) || !whole(team, receiver)) continue;
    notes.push_back(fmt::format(
        "rank {} has called {} sends to rank {} of {} than that has called receives: who hangs, "
        "if anyone does, is not known",
        sender, more > 0 ? "more" : "fewer", receiver,
        NameOf(job.teams[static_cast<std::size_t>(team)])));
  }
}

}  // namespace

std::vector<std::string> TellUnevenEnds(const FlightView& view) {
  std::vector<std::string> notes;
  CompareCollectives(view, notes);
  CompareMessages(view, notes);
  return notes;
}

}  // namespace lockstep::flight
