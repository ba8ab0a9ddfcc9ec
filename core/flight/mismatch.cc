// Compares the calls that ranks made in the same position of a group, position by position. The
// majority is right; without one all are named. Sizes are compared only where all ranks must agree
// on them.
#include "core/flight/mismatch.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lockstep::flight {
namespace {

// None where the calls are the same.
std::optional<Cause> Difference(const FlightJob& job, const FlightCall& a, const FlightCall& b) {
  if (a.kind != b.kind) return Cause::kCollectiveMismatch;
  if (a.kind == FlightKind::kOther && a.name != b.name) return Cause::kCollectiveMismatch;
  if (a.kind == FlightKind::kCoalesced) {
    if (a.parts == b.parts) return std::nullopt;
    return Cause::kCollectiveMismatch;
  }
  if (a.kind == FlightKind::kBarrier || a.kind == FlightKind::kOther) return std::nullopt;
  const auto has_type = [&](const FlightCall& call) {
    return !job.texts.TextOf(call.type).empty() && call.input_elements + call.output_elements > 0;
  };
  const bool typed = has_type(a) && has_type(b);
  if (typed && a.type != b.type) return Cause::kTypeMismatch;
  if (ComparedElements(a) == ComparedElements(b)) return std::nullopt;
  return Cause::kCountMismatch;
}

// Of the calls of whole teams.
template <typename Visit>
void ForEach(const FlightJob& job, const Visit& visit) {
  for (std::size_t d = 0; d < job.dumps.size(); ++d) {
    for (const FlightCall& call : job.dumps[d].calls) {
      if (call.point_to_point || call.cut || !job.TeamOf(d, call).aligned) continue;
      visit(job.team_of[d][static_cast<std::size_t>(call.group)], job.dumps[d].rank, call);
    }
  }
}

class Comparison {
 public:
  explicit Comparison(const FlightJob& job) : job_(job), earliest_(job.teams.size(), kNone) {}

  std::vector<FlightMismatch> Run() {
    std::unordered_map<std::uint64_t, const FlightCall*> first;
    ForEach(job_, [&](std::int32_t team, int, const FlightCall& call) {
      std::uint64_t& earliest = earliest_[static_cast<std::size_t>(team)];
      if (call.sequence >= earliest) return;
      const std::uint64_t key = static_cast<std::uint64_t>(team) << 40 ^ call.sequence;
      const auto [known, is_new] = first.try_emplace(key, &call);
      if (!is_new && Difference(job_, *known->second, call)) earliest = call.sequence;
    });
    std::vector<FlightMismatch> mismatches(job_.teams.size());
    ForEach(job_, [&](std::int32_t team, int rank, const FlightCall& call) {
      const auto t = static_cast<std::size_t>(team);
      if (call.sequence == earliest_[t]) AddTo(mismatches[t], rank, call);
    });
    const bool shifted = std::ranges::any_of(
        job_.dumps, [](const FlightDump& dump) { return dump.minor < 4 && dump.missed > 0; });
    std::vector<FlightMismatch> found;
    for (std::size_t t = 0; t < mismatches.size(); ++t) {
      if (mismatches[t].parties.size() < 2) continue;
      Finish(mismatches[t], t);
      mismatches[t].may_be_shifted = shifted;
      found.push_back(std::move(mismatches[t]));
    }
    return found;
  }

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  void AddTo(FlightMismatch& mismatch, int rank, const FlightCall& call) const {
    for (FlightMismatch::Party& party : mismatch.parties) {
      if (Difference(job_, *party.call, call)) continue;
      if (party.ranks.back() != rank) party.ranks.push_back(rank);
      return;
    }
    mismatch.parties.push_back({&call, {rank}});
  }

  void Finish(FlightMismatch& mismatch, std::size_t team) const {
    mismatch.team = static_cast<std::int32_t>(team);
    mismatch.sequence = earliest_[team];
    std::ranges::stable_sort(mismatch.parties, [](const auto& a, const auto& b) {
      return a.ranks.size() > b.ranks.size();
    });
    mismatch.cause = Difference(job_, *mismatch.parties[0].call, *mismatch.parties[1].call).value();
  }

  const FlightJob& job_;
  std::vector<std::uint64_t> earliest_;  // by team: the first position that differs
};

}  // namespace

std::vector<FlightMismatch> FindFlightMismatches(const FlightJob& job) {
  return Comparison(job).Run();
}

bool IsOfOneRun(const FlightJob& job, const FlightMismatch& mismatch) {
  struct Began {
    std::size_t ranks = 0;
    int last_rank = -1;  // one rank may have several of one number
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max(), last_ns = 0;
  };
  std::unordered_map<std::uint64_t, Began> calls;  // by sequence
  std::unordered_set<int> parties;
  for (const FlightMismatch::Party& party : mismatch.parties)
    parties.insert(party.ranks.begin(), party.ranks.end());
  ForEach(job, [&](std::int32_t team, int rank, const FlightCall& call) {
    if (team != mismatch.team || call.sequence > mismatch.sequence || !parties.contains(rank))
      return;
    Began& began = calls[call.sequence];
    if (std::exchange(began.last_rank, rank) != rank) ++began.ranks;
    began.first_ns = std::min(began.first_ns, call.created_ns);
    began.last_ns = std::max(began.last_ns, call.created_ns);
  });
  return std::ranges::any_of(calls, [&](const auto& each) {
    const Began& began = each.second;
    const bool known = began.first_ns > 0 && began.ranks >= parties.size();
    return known && began.last_ns - began.first_ns <= kClocksNs;
  });
}

bool IsOneLeftOver(const FlightJob& job, const FlightMismatch& mismatch) {
  std::unordered_set<int> parties;
  for (const FlightMismatch::Party& party : mismatch.parties)
    parties.insert(party.ranks.begin(), party.ranks.end());
  std::int64_t first_ended_ns = std::numeric_limits<std::int64_t>::max() / 2, last_began_ns = 0;
  for (const FlightDump& dump : job.dumps) {
    if (!parties.contains(dump.rank)) continue;
    last_began_ns = std::max(last_began_ns, dump.calls.front().created_ns);
    const bool ended = std::ranges::all_of(
        dump.calls, [](const FlightCall& call) { return call.done && call.ended_ns > 0; });
    if (ended) first_ended_ns = std::min(first_ended_ns, dump.newest_ns);
  }
  constexpr std::int64_t kRestartNs = 1'000'000'000;  // no job is started again sooner
  return first_ended_ns + kRestartNs < last_began_ns;
}

std::string NameOf(const FlightTeam& team) {
  if (!team.description.empty() && team.description != "undefined") return team.description;
  return "process group " + team.name;
}

std::string Describe(const FlightJob& job, const FlightCall& call) {
  const std::string_view arguments = job.texts.TextOf(call.arguments);
  const std::string_view place = job.texts.TextOf(call.place);
  return fmt::format("{}{}{}{}{}", job.texts.TextOf(call.name), arguments.empty() ? "" : " ",
                     arguments, place.empty() ? "" : " at ", place);
}

std::string NameOf(const FlightJob& job, const FlightCall& call) {
  const std::string_view place = job.texts.TextOf(call.place);
  return fmt::format("{}{}{}", job.texts.TextOf(call.name), place.empty() ? "" : " at ", place);
}

}  // namespace lockstep::flight
