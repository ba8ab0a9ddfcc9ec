// Runs core/verdict on the histories of the dumps, and says its findings in PyTorch's words.
// Mismatches that only dumps show come first, since they are proofs. Messages, groups and ranks
// without a dump are judged by findings.h.
#include "core/flight/diagnosis.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "core/flight/findings.h"
#include "core/flight/mismatch.h"

namespace lockstep::flight {
namespace {

// "ranks 0 and 2 call all_reduce Float[256] at train.py:20 in step"
std::string Calls(const FlightJob& job, const FlightMismatch::Party& party) {
  return fmt::format("{} {} {}", FormatRanks(party.ranks), Verb(party.ranks, "calls", "call"),
                     Describe(job, *party.call));
}

// "rank 1 calls barrier at train.py:31 where ranks 0 and 2 call all_reduce at train.py:19".
Headline HeadlineOf(const FlightJob& job, const FlightMismatch& mismatch) {
  const auto &most = mismatch.parties[0], &next = mismatch.parties[1];
  const auto call = [&](const FlightMismatch::Party& party) {
    return mismatch.cause == Cause::kCollectiveMismatch ? NameOf(job, *party.call)
                                                        : Describe(job, *party.call);
  };
  return Headline("{} {} {} where {} {} {}", FormatRanks(next.ranks),
                  Verb(next.ranks, "calls", "call"), call(next), FormatRanks(most.ranks),
                  Verb(most.ranks, "calls", "call"), call(most));
}

void Add(std::vector<Finding>& findings, std::vector<Finding> more) {
  findings.insert(findings.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

class Diagnostician {
 public:
  Diagnostician(const FlightJob& job, const FlightHistory& history,
                const verdict::TraceLimits& limits)
      : job_(job), history_(history), view_(job, history), limits_(limits) {}

  FlightDiagnosis Run() {
    diagnosis_.backend = history_.setting.backend;
    diagnosis_.seconds = history_.seconds;
    diagnosis_.deadline_seconds = history_.setting.deadline_seconds;
    diagnosis_.notes = job_.notes;
    if (!HasCalls()) {
      diagnosis_.notes.push_back(
          "no dump holds a call: the job had called nothing yet, or nothing was recorded "
          "(TORCH_FR_BUFFER_SIZE)");
    }
    verdict::Judgement judgement = verdict::Judge(history_.evidence, history_.setting);
    FindAll(judgement);
    if (!judgement.findings.empty() && history_.by_file_times) {
      diagnosis_.notes.push_back(
          "how long nothing moved is known from the times of the files only (copies are newer)");
    }
    Describe(judgement);
    for (std::size_t d = 0; d < job_.dumps.size(); ++d) {
      diagnosis_.under_way = diagnosis_.under_way || view_.OpenOf(d) != nullptr;
    }
    judgement.verdict = VerdictOf(judgement.findings);
    if (judgement.verdict == verdict::Verdict::kPass) {
      const std::vector<std::string> uneven = TellUnevenEnds(view_);
      if (!uneven.empty()) judgement.verdict = verdict::Verdict::kUnknown;
      diagnosis_.notes.insert(diagnosis_.notes.end(), uneven.begin(), uneven.end());
    }
    const bool open = std::ranges::any_of(job_.teams, &FlightTeam::open);
    if (open && judgement.verdict == verdict::Verdict::kPass) {
      diagnosis_.notes.push_back(fmt::format(
          "no dump tells how many ranks the job has: of ranks above {} nothing is known",
          job_.dumps.back().rank));
    }
    diagnosis_.judgement = std::move(judgement);
    MakeTrace();
    return std::move(diagnosis_);
  }

 private:
  bool HasCalls() const {
    return std::ranges::any_of(job_.dumps,
                               [](const FlightDump& dump) { return !dump.calls.empty(); });
  }

  bool OfTwoRuns() const { return history_.apart || !job_.two_worlds.empty(); }

  // What dumps of two runs show together shows nothing.
  void TellApart() {
    if (!job_.two_worlds.empty()) {
      diagnosis_.notes.push_back(job_.two_worlds +
                                 ": the dumps are of two jobs (some are left over); who waits for "
                                 "whom cannot be said, take the dumps of one job");
      return;
    }
    const FlightHistory::Apart& apart = *history_.apart;
    using How = FlightHistory::Apart::How;
    const bool written = apart.how == How::kWritten;
    diagnosis_.notes.push_back(fmt::format(
        "{} {} {} {} before rank {} {}: their dumps are of two runs (one is left over), or the "
        "clocks of their hosts differ by as much; who waits for whom cannot be said, take the "
        "dumps of one run",
        written ? "the dump of rank" : "rank", apart.left,
        written                    ? "was written"
        : apart.how == How::kEnded ? "had ended a call"
                                   : "entered a call whose time-out passed",
        Seconds(apart.seconds), apart.entered,
        written ? "made the first call that its own dump holds" : "entered it"));
  }

  void FindAll(verdict::Judgement& judgement) {
    std::vector<Finding> findings;
    if (OfTwoRuns()) {
      TellApart();
      judgement.findings.clear();
      return;
    }
    for (const FlightMismatch& mismatch : FindFlightMismatches(job_)) {
      findings.push_back(OfMismatch(mismatch));
    }
    std::vector<Finding> lost = FindRanksWithoutDump(view_);
    if (!history_.outdated.empty()) {
      diagnosis_.notes.push_back(fmt::format(
          "the dump of {} is older than the others: they completed calls that it had not made yet; "
          "who waits for whom cannot be said, take all dumps at one time",
          FormatRanks({history_.outdated.front()})));
    } else if (findings.empty()) {
      for (const Finding& finding : judgement.findings) {
        if (auto reworded = Reworded(view_, finding)) findings.push_back(std::move(*reworded));
      }
      Add(findings, FindWaitingMessages(view_));
      // Who is at the end of a chain comes before those that wait themselves.
      std::ranges::stable_partition(
          findings, [](const Finding& finding) { return finding.cause != Cause::kUnknown; });
      // Nobody else is suspected: the one that cannot be seen is.
      const bool named = !findings.empty();
      if (!named) Add(findings, std::exchange(lost, {}));
      if (!named) Add(findings, FindUnknownGroups(view_));
      if (findings.empty()) TellNotStarted();
    }
    for (Finding& finding : lost) finding.cause = Cause::kUnknown;
    Add(findings, std::move(lost));
    judgement.findings = std::move(findings);
  }

  // Whom a call waits for that no device runs yet is not known.
  void TellNotStarted() {
    std::vector<int> ranks;
    for (std::size_t d = 0; d < job_.dumps.size(); ++d) {
      const FlightCall* open = view_.OpenOf(d);
      const bool queued = open != nullptr && job_.dumps[d].tells_starts && !open->started;
      if (queued) ranks.push_back(job_.dumps[d].rank);
    }
    if (ranks.empty() || history_.seconds < history_.setting.deadline_seconds) return;
    diagnosis_.notes.push_back(fmt::format(
        "the device of {} has not started the oldest call that is not done: other work may be "
        "before it, and no dump tells which",
        FormatRanks(ranks)));
  }

  Finding OfMismatch(const FlightMismatch& mismatch) const {
    Finding finding = flight::Describe(job_, mismatch);
    finding.proved = finding.proved && history_.outdated.empty();
    JournalEvent event;
    event.communicator = history_.communicators[static_cast<std::size_t>(mismatch.team)];
    event.sequence = mismatch.sequence;
    finding.operation = event;
    return finding;
  }

  // Calls by their PyTorch names, and what became of ranks. Who is suspected of not coming has no
  // call under way, and is not finished.
  void Describe(verdict::Judgement& judgement) const {
    std::unordered_set<int> suspects;
    for (const Finding& finding : judgement.findings) {
      if (!finding.proved) suspects.insert(finding.culprits.begin(), finding.culprits.end());
    }
    for (verdict::RankOutcome& outcome : judgement.outcomes) {
      const std::size_t dump = view_.DumpOf(outcome.rank);
      if (dump == job_.dumps.size()) {
        outcome.where = "unknown: there is no dump of it";
        continue;
      }
      outcome.evidence.clear();
      const FlightCall* open = view_.OpenOf(dump);
      const FlightCall* last = view_.LastOf(dump);
      const bool silent = outcome.seconds_silent >= history_.setting.deadline_seconds;
      const bool stays = open != nullptr || suspects.count(outcome.rank) != 0;
      outcome.outcome = silent && stays ? verdict::Outcome::kHung : verdict::Outcome::kFinished;
      outcome.where = open != nullptr   ? view_.Named(dump, *open)
                      : last != nullptr ? "after " + view_.Named(dump, *last)
                                        : "before its first call";
      if (open != nullptr && open->timed_out) {
        outcome.evidence =
            fmt::format("given up after {}", Seconds(static_cast<double>(open->timeout_ms) / 1000));
      }
    }
  }

  verdict::Verdict VerdictOf(const std::vector<Finding>& findings) const {
    for (const Finding& finding : findings) {
      if (finding.cause != Cause::kUnknown) return verdict::Verdict::kFail;
    }
    const bool one_moment = !OfTwoRuns() && history_.outdated.empty();
    const bool nothing = findings.empty() && one_moment && !diagnosis_.under_way && HasCalls();
    return nothing ? verdict::Verdict::kPass : verdict::Verdict::kUnknown;
  }

  std::vector<std::size_t> ColumnsOf(const std::vector<FlightStanding>& standings,
                                     const std::vector<int>& culprits) const {
    std::unordered_set<int> wanted(culprits.begin(), culprits.end());
    std::vector<std::size_t> columns;
    const std::size_t half = std::max<std::size_t>(1, limits_.columns / 2);
    for (const bool culprit : {true, false}) {
      for (const FlightStanding& standing : standings) {
        if (columns.size() >= (culprit ? half : limits_.columns)) break;
        if ((wanted.count(job_.dumps[standing.dump].rank) != 0) == culprit) {
          columns.push_back(standing.dump);
        }
      }
    }
    std::ranges::sort(columns);
    return columns;
  }

  // The team and position of the first finding that has one.
  void MakeTrace() {
    for (const Finding& finding : diagnosis_.judgement.findings) {
      if (!finding.operation) continue;
      for (std::size_t t = 0; t < job_.teams.size(); ++t) {
        if (history_.communicators[t] != finding.operation->communicator) continue;
        FillTrace(static_cast<std::int32_t>(t), finding.operation->sequence, finding.culprits);
        return;
      }
    }
  }

  void FillTrace(std::int32_t team, std::uint64_t sequence, const std::vector<int>& culprits) {
    verdict::Trace& trace = diagnosis_.trace;
    trace.communicator = NameOf(job_.teams[static_cast<std::size_t>(team)]);
    const auto columns = ColumnsOf(view_.At(team, sequence), culprits);
    for (const std::size_t dump : columns) trace.ranks.push_back(job_.dumps[dump].rank);
    const std::uint64_t before = std::min<std::uint64_t>(sequence, limits_.rows_before);
    for (std::uint64_t n = 0; n <= before + limits_.rows_after; ++n) {
      trace.rows.push_back({sequence - before + n, n == before, {}});
      trace.rows.back().cells.resize(columns.size());
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
      for (const FlightCall& call : job_.dumps[columns[c]].calls) {
        if (call.point_to_point || view_.TeamIndex(columns[c], call) != team) continue;
        const std::uint64_t row = call.sequence - trace.rows.front().sequence;
        if (row < trace.rows.size()) trace.rows[row].cells[c] = CellOf(columns[c], call);
      }
      verdict::TraceCell& cell = trace.rows[before].cells[c];
      if (cell.call.empty()) cell.call = "(not called)";
    }
    std::erase_if(trace.rows, [](const verdict::TraceRow& row) {
      return std::ranges::all_of(row.cells,
                                 [](const verdict::TraceCell& cell) { return cell.call.empty(); });
    });
  }

  verdict::TraceCell CellOf(std::size_t dump, const FlightCall& call) const {
    const FlightCall* open = view_.OpenOf(dump);
    const verdict::CallState state = view_.IsDone(dump, call)        ? verdict::CallState::kDone
                                     : call.done || call.timed_out   ? verdict::CallState::kError
                                     : open == &call || call.started ? verdict::CallState::kWaits
                                                                     : verdict::CallState::kQueued;
    return {flight::Describe(job_, call), state};
  }

  const FlightJob& job_;
  const FlightHistory& history_;
  const FlightView view_;
  const verdict::TraceLimits& limits_;
  FlightDiagnosis diagnosis_;
};

}  // namespace

Finding Describe(const FlightJob& job, const FlightMismatch& mismatch) {
  const FlightMismatch::Party& most = mismatch.parties[0];
  const FlightMismatch::Party& next = mismatch.parties[1];
  std::size_t all = 0;
  for (const FlightMismatch::Party& party : mismatch.parties) all += party.ranks.size();
  const bool majority = 2 * most.ranks.size() > all;
  const auto [first, last] = std::ranges::minmax(
      mismatch.parties, {},
      [](const FlightMismatch::Party& party) { return party.call->created_ns; });
  const std::int64_t apart_ns = last.call->created_ns - first.call->created_ns;
  const bool together =
      first.call->created_ns == 0 ||
      (!IsOneLeftOver(job, mismatch) && (apart_ns <= kClocksNs || IsOfOneRun(job, mismatch)));
  const bool of_splits =
      most.call->kind == FlightKind::kAllToAll && mismatch.cause == Cause::kTypeMismatch;
  Finding finding{.cause = mismatch.cause,
                  .proved = together && !of_splits && !mismatch.may_be_shifted};
  for (const FlightMismatch::Party& party : mismatch.parties) {
    if (majority && &party == &most) continue;
    finding.culprits.insert(finding.culprits.end(), party.ranks.begin(), party.ranks.end());
  }
  std::ranges::sort(finding.culprits);
  const std::size_t kinds = mismatch.parties.size();
  finding.message =
      fmt::format("{}, {}{}: both are call {} of {}", Calls(job, most), Calls(job, next),
                  kinds > 2 ? fmt::format(" (and {} more kinds)", kinds - 2) : "",
                  mismatch.sequence, NameOf(job.teams[static_cast<std::size_t>(mismatch.team)]));
  if (!together) {
    finding.message += fmt::format("; they began {} apart, so the dumps may be of two runs",
                                   Seconds(static_cast<double>(apart_ns) * 1e-9));
  }
  if (of_splits) finding.message += "; ranks that exchange nothing may differ";
  if (mismatch.may_be_shifted) {
    finding.message += "; this format may count batches of messages that the dumps do not show";
  }
  finding.headline = HeadlineOf(job, mismatch);
  finding.remedy = fmt::format(
      "Compare what {} and the others call up to there: every rank of a process group must call "
      "the "
      "same collectives with the same sizes and types in the same order.",
      FormatRanks(finding.culprits));
  return finding;
}

Result<FlightDiagnosis> DiagnoseFlight(const FlightJob& job, std::optional<double> deadline_seconds,
                                       const verdict::TraceLimits& limits) {
  LOCKSTEP_ASSIGN_OR_RETURN(const FlightHistory history, HistoryOf(job, deadline_seconds));
  return Diagnostician(job, history, limits).Run();
}

}  // namespace lockstep::flight
