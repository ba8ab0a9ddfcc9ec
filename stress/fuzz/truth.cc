// Compares a judgement with what the simulation knows, at the end of a trial and at random moments
// before. The header says what must be said of which fault.
#include "stress/fuzz/truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "core/base/random.h"
#include "core/journal/journal.h"
#include "core/verdict/semantics.h"

namespace lockstep::stress::fuzz {
namespace {

// The faulty rank calls anything else than it was meant to.
bool CallsDiffer(const FuzzTrial& trial) {
  const std::vector<PlannedCall> meant = MeantCalls(trial, trial.faulty);
  const std::vector<PlannedCall> real = RealCalls(trial, trial.faulty);
  return !std::equal(meant.begin(), meant.end(), real.begin(), real.end(),
                     [](const PlannedCall& a, const PlannedCall& b) {
                       return a.communicator == b.communicator &&
                              verdict::SameCall(a.operation, b.operation);
                     });
}

// Longer than any collective takes to complete once all have come. Whoever ends a run on the
// strength of a proof waits so long for a sign of life (core/verdict/judge.h).
constexpr double kQuietSeconds = 0.01;

std::string Show(const verdict::Judgement& judgement) {
  std::vector<std::string> words;
  for (const verdict::Finding& finding : judgement.findings) {
    words.push_back(fmt::format("{}{} of {} ({})", finding.proved ? "" : "suspected ",
                                finding.cause.name(), fmt::join(finding.culprits, ","),
                                finding.message));
  }
  return words.empty() ? "no finding" : fmt::format("{}", fmt::join(words, "; "));
}

bool Fired(const FuzzTrial& trial, const FuzzRun& run, std::int64_t ns) {
  return trial.fault != FuzzFault::kNone && run.fault_ns >= 0 && run.fault_ns <= ns;
}

verdict::Cause CauseOf(FuzzFault fault) {
  switch (fault) {
    case FuzzFault::kExit:
      return verdict::Cause::kRankExited;
    case FuzzFault::kThrow:
      return verdict::Cause::kRankFailed;
    case FuzzFault::kCrash:
      return verdict::Cause::kRankCrashed;
    case FuzzFault::kKill:
      return verdict::Cause::kRankKilled;
    case FuzzFault::kStop:
      return verdict::Cause::kRankStopped;
    default:
      return verdict::Cause::kUnknown;
  }
}

verdict::Outcome OutcomeOf(comm::sim::RankState state) {
  switch (state) {
    case comm::sim::RankState::kFinished:
      return verdict::Outcome::kFinished;
    case comm::sim::RankState::kFailed:
    case comm::sim::RankState::kExited:  // before its end, whatever the code
      return verdict::Outcome::kFailed;
    case comm::sim::RankState::kCrashed:
      return verdict::Outcome::kCrashed;
    case comm::sim::RankState::kKilled:
      return verdict::Outcome::kKilled;
    case comm::sim::RankState::kStopped:
      return verdict::Outcome::kStopped;
    case comm::sim::RankState::kHung:
      break;
  }
  return verdict::Outcome::kHung;
}

// The call that a rank is in: the first that it made of those that are open.
std::optional<journal::JournalEvent> OldestOpen(const journal::Journal& journal) {
  std::vector<journal::JournalEvent> open;
  for (const journal::JournalEvent& event : journal.events) {
    if (event.kind == journal::EventKind::kEnqueue) open.push_back(event);
    if (event.kind != journal::EventKind::kEnd && event.kind != journal::EventKind::kError)
      continue;
    std::erase_if(open, [&](const journal::JournalEvent& one) {
      return one.communicator == event.communicator && one.sequence == event.sequence;
    });
  }
  if (open.empty()) return std::nullopt;
  return open.front();
}

// When the call that a rank is in at `ns` completes, or one behind it, or -1.
std::int64_t CompletesAfter(const FuzzRun& run, const verdict::RankEvidence& evidence,
                            std::int64_t ns) {
  const auto open = OldestOpen(evidence.journal);
  for (const journal::JournalEvent& event :
       run.journals[static_cast<std::size_t>(evidence.rank)].events) {
    const auto at = static_cast<std::int64_t>(event.ticks);
    if (at <= ns || event.kind != journal::EventKind::kEnd) continue;
    if (!open || open->communicator == event.communicator) return at;
  }
  return -1;
}

// A rank that is gone had begun a collective that it did not complete: its part may be done.
bool GoneInside(const std::vector<verdict::RankEvidence>& evidence) {
  return std::ranges::any_of(evidence, [](const verdict::RankEvidence& rank) {
    const auto& events = rank.journal.events;
    const bool failed = std::ranges::any_of(events, [](const journal::JournalEvent& event) {
      return event.kind == journal::EventKind::kError;
    });
    const bool gone = rank.state != verdict::ProcessState::kRunning || !rank.error.empty();
    return failed || (gone && OldestOpen(rank.journal).has_value());
  });
}

bool Quiet(const std::vector<verdict::RankEvidence>& evidence) {
  return std::ranges::all_of(evidence, [](const verdict::RankEvidence& rank) {
    return rank.seconds_silent >= kQuietSeconds;
  });
}

std::string WrongOutcome(const FuzzRun& run, std::int64_t ns,
                         const std::vector<verdict::RankEvidence>& evidence,
                         const verdict::Judgement& judgement) {
  for (const verdict::RankOutcome& said : judgement.outcomes) {
    const comm::sim::RankState state = run.report.ranks[static_cast<std::size_t>(said.rank)].state;
    if (ns == kAtTheEnd && said.outcome != OutcomeOf(state)) {
      return fmt::format("outcome: rank {} {}, and is said to be {}", said.rank,
                         comm::sim::NameOf(state), verdict::NameOf(said.outcome));
    }
    if (ns == kAtTheEnd || said.outcome != verdict::Outcome::kHung) continue;
    if (GoneInside(evidence) && !Quiet(evidence)) continue;
    const std::int64_t later =
        CompletesAfter(run, evidence[static_cast<std::size_t>(said.rank)], ns);
    if (later < 0) continue;
    return fmt::format("false hang: at {} ns rank {} is said to hang ({}), and goes on at {} ns",
                       ns, said.rank, said.evidence, later);
  }
  return "";
}

bool OnlyUnknown(const verdict::Judgement& judgement) {
  return !judgement.findings.empty() &&
         std::ranges::all_of(judgement.findings, [](const verdict::Finding& one) {
           return one.cause == verdict::Cause::kUnknown ||
                  (one.cause == verdict::Cause::kTransportStall && !one.proved &&
                   one.culprits.empty());
         });
}

// Of a rank that ends, or never goes on.
std::string WrongAboutEnd(const FuzzTrial& trial, std::int64_t ns,
                          const verdict::Judgement& judgement) {
  // A rank that computes beside calls that it posted looks like one that waits for them.
  if (trial.fault == FuzzFault::kHang && HasNonblockingCalls(trial) && OnlyUnknown(judgement))
    return "";
  const bool hang = trial.fault == FuzzFault::kHang;
  if (hang && ns != kAtTheEnd) {
    return judgement.findings.empty() ? "" : "false alarm: a rank computes";
  }
  if (judgement.findings.empty()) return "missed";
  const verdict::Finding& first = judgement.findings.front();
  const bool cause = hang ? first.cause == verdict::Cause::kRankBusy ||
                                (trial.at_init && first.cause == verdict::Cause::kInitFailure)
                          : first.cause == CauseOf(trial.fault);
  if (!cause) {
    return fmt::format("cause: not {}",
                       verdict::NameOf(hang ? verdict::Cause::kRankBusy : CauseOf(trial.fault)));
  }
  if (first.culprits != std::vector<int>{trial.faulty}) {
    return fmt::format("culprit: not rank {} alone", trial.faulty);
  }
  return first.proved == hang ? "certainty" : "";
}

bool AllFinished(const FuzzRun& run) {
  return std::ranges::all_of(run.report.ranks, [](const comm::sim::RankEnd& end) {
    return end.state == comm::sim::RankState::kFinished;
  });
}

std::string WrongAboutDivergence(const FuzzTrial& trial, const FuzzRun& run, std::int64_t ns,
                                 const verdict::Judgement& judgement) {
  const bool end = ns == kAtTheEnd;
  if (judgement.findings.empty()) {
    return end && (!AllFinished(run) || MadeAnotherNumberOfCalls(trial, run)) ? "missed" : "";
  }
  if (end && OnlyUnknown(judgement)) return AllFinished(run) ? "false alarm" : "";
  return WrongAboutCalls(trial, run, ns, judgement.findings.front());
}

std::string WrongAt(const FuzzTrial& trial, const FuzzRun& run, std::int64_t ns,
                    const std::vector<verdict::RankEvidence>& evidence,
                    const verdict::Judgement& judgement) {
  std::string why = WrongOutcome(run, ns, evidence, judgement);
  if (!why.empty()) return why;
  const bool healthy =
      Diverges(trial.fault) ? !CallsDiffer(trial) : Recovers(trial.fault) || !Fired(trial, run, ns);
  if (healthy) {
    if (!judgement.findings.empty()) return "false alarm";
    return ns == kAtTheEnd && judgement.verdict != verdict::Verdict::kPass ? "false alarm: no pass"
                                                                           : "";
  }
  if (ns != kAtTheEnd && !judgement.findings.empty() && !judgement.findings.front().proved) {
    return "certainty: suspected before the deadline";
  }
  return Diverges(trial.fault) ? WrongAboutDivergence(trial, run, ns, judgement)
                               : WrongAboutEnd(trial, ns, judgement);
}

// What the simulation itself must keep, so that it can be the truth.
std::string WrongOfSimulation(const FuzzTrial& trial, const FuzzRun& run) {
  const bool healthy = Diverges(trial.fault)
                           ? !CallsDiffer(trial)
                           : Recovers(trial.fault) || !Fired(trial, run, kAtTheEnd);
  if (!healthy) return "";
  for (std::size_t rank = 0; rank < run.report.ranks.size(); ++rank) {
    const comm::sim::RankEnd& end = run.report.ranks[rank];
    if (end.state == comm::sim::RankState::kFinished) continue;
    return fmt::format("simulation: nothing is wrong, and rank {} {} {} {}", rank,
                       comm::sim::NameOf(end.state), end.message, end.where);
  }
  // Two equal calls that changed places give each the other's result.
  for (const std::string& wrong : run.wrong) {
    if (!wrong.empty() && trial.fault != FuzzFault::kSwap)
      return "simulation: wrong data: " + wrong;
  }
  return "";
}

// No library compares reductions, and results of this length betray one that differs; but of ranks
// that are no power of two some compute nothing in MPI's recursive doubling.
bool MustCorrupt(const FuzzTrial& trial) {
  constexpr std::int64_t kTelling = 33;
  if (trial.fault != FuzzFault::kWrongOp) return false;
  const scenario::ScriptStep& step = trial.steps[trial.at];
  const collective::Operation& meant = step.operation;
  const std::size_t size = trial.communicators[step.communicator].members.size();
  if (trial.rules == comm::sim::SimRules::kMpi && !std::has_single_bit(size)) return false;
  return meant.collective == collective::Collective::kAllReduce && meant.count >= kTelling;
}

// The moment of some event: there is where a judge can err; or a while later.
std::optional<std::int64_t> SomeMoment(const FuzzRun& run, bool later, Random& random) {
  const auto& events = run.journals[random.Below(run.journals.size())].events;
  if (events.empty()) return std::nullopt;
  const auto ns = static_cast<std::int64_t>(events[random.Below(events.size())].ticks);
  return later ? ns + static_cast<std::int64_t>(kQuietSeconds * 1e9) : ns;
}

}  // namespace

Assessment AssessTrial(const FuzzTrial& trial, const FuzzRun& run, const Judging& judge,
                       int moments) {
  Assessment assessment;
  assessment.trouble = !AllFinished(run);
  assessment.silent = !assessment.trouble && Diverges(trial.fault) && CallsDiffer(trial);
  assessment.corrupt =
      assessment.silent && std::ranges::any_of(run.wrong, [](const auto& w) { return !w.empty(); });
  assessment.wrong = WrongOfSimulation(trial, run);
  if (assessment.silent && !assessment.corrupt && MustCorrupt(trial)) {
    assessment.wrong = "simulation: another reduction on one rank, and all results are right";
  }
  const verdict::Setting setting = SettingOf(trial);
  Random random(trial.seed ^ 0x5eed);
  for (int i = 0; i <= moments && assessment.wrong.empty(); ++i) {
    const std::optional<std::int64_t> moment =
        i == 0 ? kAtTheEnd : SomeMoment(run, i % 2 == 0, random);
    if (!moment) continue;
    const std::int64_t ns = *moment;
    const std::vector<verdict::RankEvidence> evidence = EvidenceAt(trial, run, ns);
    const verdict::Judgement judgement = judge(evidence, setting);
    if (ns == kAtTheEnd) assessment.unknown = assessment.trouble && OnlyUnknown(judgement);
    const std::string why = WrongAt(trial, run, ns, evidence, judgement);
    if (why.empty()) continue;
    assessment.wrong =
        fmt::format("{}: {}, the verdict is: {}", why,
                    ns == kAtTheEnd ? "at the end" : fmt::format("at {} ns", ns), Show(judgement));
  }
  return assessment;
}

}  // namespace lockstep::stress::fuzz
