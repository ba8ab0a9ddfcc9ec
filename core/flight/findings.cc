// Sentences for what a journal's judge suspects and for what dumps alone show. A suspicion that
// dumps cannot support is dropped. Proofs are worded in mismatch.h.
#include "core/flight/findings.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/flight/mismatch.h"

namespace lockstep::flight {
namespace {

bool Overdue(const FlightView& view) {
  return view.history.seconds >= view.history.setting.deadline_seconds;
}

JournalEvent EventOf(const FlightView& view, std::int32_t team, std::uint64_t sequence) {
  return JournalEvent{.sequence = sequence,
                      .root = -1,
                      .communicator = view.history.communicators[static_cast<std::size_t>(team)]};
}

std::vector<int> RanksOf(const FlightView& view, const std::vector<FlightStanding>& standings) {
  std::vector<int> ranks;
  for (const FlightStanding& standing : standings) {
    ranks.push_back(view.job.dumps[standing.dump].rank);
  }
  return ranks;
}

// "rank 2 has not called it: its last call is …, done", as the end of a sentence.
std::string WhatInstead(const FlightView& view, int rank, const FlightStanding& standing) {
  const std::string who = fmt::format("rank {}", rank);
  const FlightCall* open = view.OpenOf(standing.dump);
  if (standing.call != nullptr) {
    const bool behind = open != nullptr && open != standing.call;
    return fmt::format("{} has queued it, but it has not begun{}", who,
                       behind ? ": " + view.Named(standing.dump, *open) + " comes before" : "");
  }
  if (open != nullptr) {
    return fmt::format("{} has not called it: it is in {}", who, view.Named(standing.dump, *open));
  }
  const FlightCall* last = view.LastOf(standing.dump);
  if (last == nullptr) return who + " has not called it, nor anything else";
  return fmt::format("{} has not called it: its last call, {}, is done", who,
                     view.Named(standing.dump, *last));
}

// The same for a headline.
std::string WhatInsteadBriefly(const FlightView& view, const FlightStanding& standing,
                               const std::string& call) {
  const FlightCall* open = view.OpenOf(standing.dump);
  if (standing.call != nullptr) return fmt::format("has queued {}, but it has not begun", call);
  if (open == nullptr) return "has not called " + call;
  return fmt::format("is in {} instead of {}", NameOf(view.job, *open), call);
}

std::string PlaceClause(const FlightView& view, const FlightStanding& standing) {
  const FlightCall* last = view.LastOf(standing.dump);
  const std::string_view place = last == nullptr ? "" : view.job.texts.TextOf(last->place);
  return place.empty() ? "" : fmt::format(" after {}", place);
}

struct Sides {
  std::vector<FlightStanding> waiting;
  std::vector<FlightStanding> left;
  std::vector<FlightStanding> others;
};

Sides SidesOf(const std::vector<FlightStanding>& standings, const std::vector<int>& culprits,
              const FlightView& view) {
  Sides sides;
  for (const FlightStanding& standing : standings) {
    const int rank = view.job.dumps[standing.dump].rank;
    if (std::ranges::binary_search(culprits, rank)) {
      sides.others.push_back(standing);
    } else if (standing.done) {
      sides.left.push_back(standing);
    } else if (standing.call != nullptr) {
      sides.waiting.push_back(standing);
    }
  }
  return sides;
}

Finding MissingRanks(const FlightView& view, Finding finding, const Sides& sides) {
  const FlightStanding& first = sides.others.front();
  const int rank = view.job.dumps[first.dump].rank;
  const std::vector<int> waiting = RanksOf(view, sides.waiting);
  const FlightStanding& in = sides.waiting.front();
  const std::string call = NameOf(view.job, *in.call);
  finding.headline =
      Headline(sides.others.size() == 1
                   ? fmt::format("rank {} {}", rank, WhatInsteadBriefly(view, first, call))
                   : fmt::format("{} are not in {}", FormatRanks(finding.culprits), call));
  finding.headline.Add(verdict::WaitingClause(waiting, finding.culprits));
  finding.message = fmt::format("{} {} for {} in {} for {}; {}", FormatRanks(waiting),
                                Verb(waiting, "waits", "wait"), FormatRanks(finding.culprits),
                                view.Named(in.dump, *in.call), Seconds(view.history.seconds),
                                WhatInstead(view, rank, first));
  finding.remedy = fmt::format(
      "See what rank {} does{} (its log, py-spy dump): it computes, loads data, is "
      "stuck outside of PyTorch's collectives, or its program took another way.",
      rank, PlaceClause(view, first));
  return finding;
}

// All that left a dump entered it. Whether there are others is not known, so nobody is to blame.
Finding StallOfSome(const FlightView& view, Finding finding, const FlightStanding& in,
                    const std::vector<int>& waiting) {
  finding.cause = Cause::kUnknown;
  finding.culprits = {};
  finding.headline =
      Headline("{} {} in {} for {}", FormatRanks(waiting), Verb(waiting, "waits", "wait"),
               NameOf(view.job, *in.call), Seconds(view.history.seconds));
  finding.headline.Add("; the dumps do not say whether the job has more ranks");
  finding.message = fmt::format(
      "{} {} in {} for {}; the dumps do not say how many ranks the job has: one above rank {} "
      "may have left no dump",
      FormatRanks(waiting), Verb(waiting, "waits", "wait"), view.Named(in.dump, *in.call),
      Seconds(view.history.seconds), view.job.dumps.back().rank);
  finding.remedy =
      "Count the ranks of the job. If there are more, collect their dumps; if not, look at the "
      "links and devices between them.";
  return finding;
}

// All entered it. Who is still in it while most have left it is where to look.
Finding Stall(const FlightView& view, Finding finding, const Sides& sides) {
  const std::vector<int> waiting = RanksOf(view, sides.waiting);
  const std::vector<int> left = RanksOf(view, sides.left);
  const FlightStanding& in = sides.waiting.front();
  if (view.TeamOf(in).open) return StallOfSome(view, std::move(finding), in, waiting);
  finding.message = fmt::format("all ranks entered {}, and {} did not leave it for {}",
                                view.Named(in.dump, *in.call), FormatRanks(waiting),
                                Seconds(view.history.seconds));
  finding.headline =
      Headline("{} {} in {} for {}", FormatRanks(waiting), Verb(waiting, "hangs", "hang"),
               NameOf(view.job, *in.call), Seconds(view.history.seconds));
  finding.headline.Add("; all ranks entered it");
  if (!left.empty()) finding.message += fmt::format("; {} left it", FormatRanks(left));
  if (waiting.size() < left.size()) finding.culprits = waiting;
  finding.remedy = left.empty()
                       ? "No rank's program is at fault: look at the links and devices between the "
                         "ranks (NCCL_DEBUG=INFO, Xid messages in dmesg, error counters)."
                       : fmt::format(
                             "Look at the devices and links of {} first (Xid messages in dmesg, "
                             "error counters, NCCL_DEBUG=INFO).",
                             FormatRanks(waiting.size() < left.size() ? waiting : left));
  return finding;
}

// Of a ring whose ranks wait for each other: one that need not wait, and has not called what
// another of them waits in.
std::optional<Finding> LateInInversion(const FlightView& view, const Finding& ring) {
  for (const int rank : ring.culprits) {
    const std::size_t dump = view.DumpOf(rank);
    const FlightCall* open = dump == view.job.dumps.size() ? nullptr : view.OpenOf(dump);
    if (open == nullptr || !view.WentOnBeside(dump, *open)) continue;
    for (const int other : ring.culprits) {
      const std::size_t waiter = view.DumpOf(other);
      const FlightCall* in = waiter == view.job.dumps.size() ? nullptr : view.OpenOf(waiter);
      if (other == rank || in == nullptr || in->point_to_point) continue;
      if (!view.job.TeamOf(waiter, *in).told || view.WentOnBeside(waiter, *in)) continue;
      const auto standings = view.At(view.TeamIndex(waiter, *in), in->sequence);
      const bool late = std::ranges::any_of(standings, [&](const FlightStanding& standing) {
        return standing.dump == dump && standing.call == nullptr;
      });
      if (!late) continue;
      Finding finding = ring;
      finding.cause = Cause::kRankBusy;
      finding.culprits = {rank};
      finding.operation = EventOf(view, view.TeamIndex(waiter, *in), in->sequence);
      const Sides sides = SidesOf(standings, finding.culprits, view);
      if (sides.waiting.empty()) continue;
      return MissingRanks(view, std::move(finding), sides);
    }
  }
  return std::nullopt;
}

Finding Inversion(const FlightView& view, Finding finding) {
  if (auto late = LateInInversion(view, finding)) return std::move(*late);
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < finding.culprits.size() && i < kShown; ++i) {
    const std::size_t dump = view.DumpOf(finding.culprits[i]);
    if (dump == view.job.dumps.size() || view.OpenOf(dump) == nullptr) continue;
    text += fmt::format("{}rank {} waits in {}", text.empty() ? "" : ", ", finding.culprits[i],
                        view.Named(dump, *view.OpenOf(dump)));
  }
  if (finding.culprits.size() > kShown) {
    text += fmt::format(" (and {} more)", finding.culprits.size() - kShown);
  }
  finding.message = text + ": each waits for another of them, in another process group";
  finding.headline =
      Headline("{} wait for each other in different process groups", FormatRanks(finding.culprits));
  finding.remedy =
      "Call the collectives of different process groups in the same order on all ranks (with NCCL "
      "2.26 or newer NCCL_LAUNCH_ORDER_IMPLICIT=1 lets one host thread's order decide).";
  return finding;
}

}  // namespace

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
  return std::ranges::find(given_up, &call) == given_up.end();
}

bool FlightView::WentOnBeside(std::size_t dump, const FlightCall& call) const {
  const auto& calls = job.dumps[dump].calls;
  return std::any_of(
      calls.begin() + (&call - calls.data()), calls.end(),
      [&](const FlightCall& later) { return later.group != call.group && IsDone(dump, later); });
}

std::int32_t FlightView::TeamIndex(std::size_t dump, const FlightCall& call) const {
  return job.team_of[dump][static_cast<std::size_t>(call.group)];
}

std::vector<FlightStanding> FlightView::At(std::int32_t team, std::uint64_t sequence) const {
  std::vector<FlightStanding> standings;
  const FlightTeam& of = job.teams[static_cast<std::size_t>(team)];
  for (std::size_t d = 0; d < job.dumps.size(); ++d) {
    if (!std::ranges::binary_search(of.ranks, job.dumps[d].rank)) continue;
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
    if (std::ranges::binary_search(ranks, rank)) return static_cast<std::int32_t>(t);
  }
  return -1;
}

std::size_t FlightView::DumpOf(int rank) const {
  const auto found = std::ranges::lower_bound(job.dumps, rank, {}, &FlightDump::rank);
  const bool known = found != job.dumps.end() && found->rank == rank;
  return known ? static_cast<std::size_t>(found - job.dumps.begin()) : job.dumps.size();
}

std::string FlightView::Named(std::size_t dump, const FlightCall& call) const {
  const FlightTeam& team = job.teams[static_cast<std::size_t>(TeamIndex(dump, call))];
  return fmt::format("{} ({} {} of {})", Describe(job, call),
                     call.point_to_point ? "message" : "call", call.sequence, NameOf(team));
}

std::optional<Finding> Reworded(const FlightView& view, const Finding& finding) {
  if (!finding.operation || finding.proved) return std::nullopt;
  Finding result = finding;
  std::ranges::sort(result.culprits);
  if (finding.cause == Cause::kOrderInversion) {
    if (!std::ranges::all_of(view.job.teams, &FlightTeam::aligned)) return std::nullopt;
    return Inversion(view, std::move(result));
  }
  const std::int32_t team = [&] {
    for (const RankEvidence& rank : view.history.evidence) {
      for (const JournalEvent& event : rank.journal.events) {
        if (event.communicator == finding.operation->communicator) {
          const std::int32_t found = view.TeamOfCommunicator(event.communicator, rank.rank);
          if (found >= 0) return found;
        }
      }
    }
    return std::int32_t{-1};
  }();
  if (team < 0) return std::nullopt;
  const FlightTeam& of = view.job.teams[static_cast<std::size_t>(team)];
  if (!of.told || !of.aligned) return std::nullopt;
  const Sides sides = SidesOf(view.At(team, finding.operation->sequence), result.culprits, view);
  if (sides.waiting.empty()) return std::nullopt;
  if (finding.cause == Cause::kTransportStall) return Stall(view, std::move(result), sides);
  if (sides.others.empty()) return std::nullopt;
  return MissingRanks(view, std::move(result), sides);
}

std::vector<Finding> FindRanksWithoutDump(const FlightView& view) {
  const FlightJob& job = view.job;
  if (job.missing.empty()) return {};
  Finding finding{.cause = Cause::kUnknown, .culprits = job.missing};
  finding.message = fmt::format("there is no dump of {}: what became of {} is not known",
                                FormatRanks(job.missing), job.missing.size() == 1 ? "it" : "them");
  finding.headline = Headline::Of(finding.message);
  finding.remedy = fmt::format(
      "Look for the log, the process and the host of rank {}, and collect its dump if there is "
      "one.",
      job.missing.front());
  if (!Overdue(view)) return {finding};
  for (std::size_t t = 0; t < job.teams.size(); ++t) {
    const FlightTeam& team = job.teams[t];
    std::vector<int> lost;
    std::set_intersection(team.ranks.begin(), team.ranks.end(), job.missing.begin(),
                          job.missing.end(), std::back_inserter(lost));
    if (lost.empty() || !team.told || !team.aligned) continue;
    const auto member = std::ranges::find_if(
        team.ranks, [&](int rank) { return view.DumpOf(rank) < job.dumps.size(); });
    if (member == team.ranks.end()) continue;
    const std::size_t some = view.DumpOf(*member);
    const FlightCall* open = view.OpenOf(some);
    if (open == nullptr || open->point_to_point) continue;
    if (view.TeamIndex(some, *open) != static_cast<std::int32_t>(t)) continue;
    const std::vector<FlightStanding> standings =
        view.At(static_cast<std::int32_t>(t), open->sequence);
    const bool all = std::ranges::all_of(
        standings, [](const auto& standing) { return standing.call != nullptr && !standing.done; });
    if (!all) continue;
    const std::vector<int> waiting = RanksOf(view, standings);
    finding.cause = Cause::kRankLost;
    finding.culprits = lost;
    finding.operation = EventOf(view, static_cast<std::int32_t>(t), open->sequence);
    finding.headline = Headline(FormatRanks(lost) + " left no dump");
    finding.headline.Add("; {} {} in {}", FormatRanks(waiting), Verb(waiting, "waits", "wait"),
                         NameOf(job, *open));
    finding.message = fmt::format(
        "{} {} in {} for {}, which all of them entered; only {} left no dump that says so: dead, "
        "or stuck before it could write one, or its file was not collected",
        FormatRanks(waiting), Verb(waiting, "waits", "wait"), view.Named(some, *open),
        Seconds(view.history.seconds), FormatRanks(lost));
    break;
  }
  return {finding};
}

std::vector<Finding> FindUnknownGroups(const FlightView& view) {
  if (!Overdue(view)) return {};
  constexpr std::size_t kShown = 4;
  Finding finding{.cause = Cause::kUnknown};
  std::string text;
  for (std::size_t d = 0; d < view.job.dumps.size(); ++d) {
    const FlightCall* open = view.OpenOf(d);
    if (open == nullptr || open->point_to_point || view.job.TeamOf(d, *open).told) continue;
    finding.culprits.push_back(view.job.dumps[d].rank);
    if (finding.culprits.size() > kShown) continue;
    text += fmt::format("{}rank {} in {}", text.empty() ? "" : ", ", view.job.dumps[d].rank,
                        view.Named(d, *open));
  }
  if (finding.culprits.empty()) return {};
  finding.message = fmt::format(
      "{} {} for {}: {}{}; the dumps do not say who else belongs to these groups",
      FormatRanks(finding.culprits), Verb(finding.culprits, "waits", "wait"),
      Seconds(view.history.seconds), text, finding.culprits.size() > kShown ? " …" : "");
  finding.headline =
      Headline("{} {} for {}", FormatRanks(finding.culprits),
               Verb(finding.culprits, "waits", "wait"), Seconds(view.history.seconds));
  finding.headline.Add("; who else belongs to their process groups is not known");
  finding.remedy =
      "Compare what these ranks and the other members of their groups call: every member must call "
      "it, and ranks that share several groups must use them in the same order.";
  return {finding};
}

}  // namespace lockstep::flight
