// For one call of a group: who entered it, who left it, who never came. It relies on dumps that are
// sorted by rank and calls that are in order.
#include "core/flight/standing.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/flight/mismatch.h"

namespace lockstep::flight {

FlightView::FlightView(const FlightJob& of_job, const FlightHistory& of_history)
    : job(of_job), history(of_history), open_(of_job.dumps.size()) {
  for (std::size_t d = 0; d < job.dumps.size(); ++d) {
    for (const FlightCall& call : job.dumps[d].calls) {
      if (IsDone(d, call)) continue;
      open_[d] = &call;
      break;
    }
  }
}

bool FlightView::IsDone(std::size_t dump, const FlightCall& call) const {
  if (!call.done) return false;
  const auto& given_up = history.given_up[dump];
  return std::find(given_up.begin(), given_up.end(), &call) == given_up.end();
}

std::int32_t FlightView::TeamIndex(std::size_t dump, const FlightCall& call) const {
  return job.team_of[dump][static_cast<std::size_t>(call.group)];
}

std::vector<FlightStanding> FlightView::At(std::int32_t team, std::uint64_t sequence) const {
  std::vector<FlightStanding> standings;
  const FlightTeam& of = job.teams[static_cast<std::size_t>(team)];
  for (std::size_t d = 0; d < job.dumps.size(); ++d) {
    if (!std::binary_search(of.ranks.begin(), of.ranks.end(), job.dumps[d].rank)) continue;
    FlightStanding standing{.dump = d};
    const auto& calls = job.dumps[d].calls;
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      if (call->point_to_point || TeamIndex(d, *call) != team) continue;
      if (call->sequence == sequence) standing.call = &*call;
      if (call->sequence >= sequence) continue;
      standing.last = &*call;
      break;
    }
    standing.done = standing.call != nullptr && IsDone(d, *standing.call);
    standings.push_back(standing);
  }
  return standings;
}

const FlightCall* FlightView::LastOf(std::size_t dump) const {
  const auto& calls = job.dumps[dump].calls;
  return calls.empty() ? nullptr : &calls.back();
}

std::int32_t FlightView::TeamOfCommunicator(std::uint16_t communicator, int rank) const {
  for (std::size_t t = 0; t < job.teams.size(); ++t) {
    if (history.communicators[t] != communicator) continue;
    const auto& ranks = job.teams[t].ranks;
    if (std::binary_search(ranks.begin(), ranks.end(), rank)) return static_cast<std::int32_t>(t);
  }
  return -1;
}

std::size_t FlightView::DumpOf(int rank) const {
  const auto found =
      std::lower_bound(job.dumps.begin(), job.dumps.end(), rank,
                       [](const FlightDump& dump, int wanted) { return dump.rank < wanted; });
  const bool known = found != job.dumps.end() && found->rank == rank;
  return known ? static_cast<std::size_t>(found - job.dumps.begin()) : job.dumps.size();
}

std::string FlightView::Named(std::size_t dump, const FlightCall& call) const {
  const FlightTeam& team = job.teams[static_cast<std::size_t>(TeamIndex(dump, call))];
  return fmt::format("{} ({} {} of {})", Describe(job, call),
                     call.point_to_point ? "message" : "call", call.sequence, NameOf(team));
}

}  // namespace lockstep::flight
