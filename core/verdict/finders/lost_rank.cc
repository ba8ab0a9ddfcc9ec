// Ranks that are gone, stopped or failed: facts, not suspicions.
#include "core/verdict/finders/lost_rank.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "core/verdict/finders/skipped_call.h"
#include "core/verdict/link_findings.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {

namespace {

Cause CauseOf(const RankView& view) {
  switch (view.evidence->state) {
    case ProcessState::kExited:
      return Cause::kRankExited;
    case ProcessState::kSignalled:
      return EndedBySelf(view.evidence->signal) ? Cause::kRankCrashed : Cause::kRankKilled;
    default:
      return Cause::kRankStopped;
  }
}

std::string RemedyOf(Cause cause, const RankView& first) {
  const int rank = first.rank();
  if (cause == Cause::kRankCrashed) {
    return fmt::format(
        "Read rank {0}'s standard error and its core dump (coredumpctl list, or ulimit -c "
        "unlimited and run this case again).",
        rank);
  }
  if (cause == Cause::kRankKilled && first.evidence->signal == SIGKILL) {
    return fmt::format(
        "Look at rank {}'s host for an out-of-memory kill (dmesg | grep -i oom, or memory.events "
        "of its cgroup); if there is none, ask the job scheduler who sent SIGKILL.",
        rank);
  }
  if (cause == Cause::kRankKilled) {
    return fmt::format("Find who sent {} on rank {}'s host: a scheduler, a time limit or a person.",
                       SignalName(first.evidence->signal), rank);
  }
  if (cause == Cause::kRankStopped) {
    return fmt::format(
        "Find who stopped rank {}: a debugger, job control or a scheduler that suspends jobs; "
        "kill -CONT continues a worker that is still there.",
        rank);
  }
  return fmt::format(
      "Read rank {}'s standard error just before the end; nothing of Lockstep's exits a worker in "
      "this place, so look for exit() in the library, its plugins or a preloaded object.",
      rank);
}

// Who waits for ever because somebody is gone.
std::string WaitingClause(const Situation& situation, const Stuck& stuck) {
  std::vector<int> waiting;
  const RankView* first = nullptr;
  for (std::size_t i = 0; i < situation.views.size(); ++i) {
    if (stuck.root[i] == Stuck::kNobody) continue;
    if (first == nullptr) first = &situation.views[i];
    waiting.push_back(situation.views[i].rank());
  }
  if (first == nullptr) return "";
  const std::string_view verb = Verb(waiting, "waits", "wait");
  if (first->open == nullptr) {
    return fmt::format("; {} {} for it to connect", FormatRanks(waiting), verb);
  }
  return fmt::format(
      "; {} {} for it in {}", FormatRanks(waiting), verb,
      waiting.size() == 1 ? DescribeInvocation(*first->open) : "this or a later collective");
}

// "; ranks 2-5 were killed too": those of the culprits that the finding has not named.
std::string AlsoClause(std::vector<int> others, int named, Cause cause) {
  static const std::map<Cause, std::string_view> kWords = {{Cause::kRankCrashed, "crashed"},
                                                           {Cause::kRankKilled, "died by a signal"},
                                                           {Cause::kRankExited, "exited"},
                                                           {Cause::kRankStopped, "stopped"},
                                                           {Cause::kRankFailed, "reported errors"}};
  std::erase(others, named);
  if (others.empty()) return "";
  return fmt::format("; {} {} too", FormatRanks(others), kWords.at(cause));
}

Finding DepartureOf(Cause cause, const std::vector<const RankView*>& gone,
                    const std::string& waiting_clause) {
  const RankView& first = *gone.front();
  Finding finding;
  finding.cause = cause;
  finding.proved = true;
  for (const RankView* view : gone) finding.culprits.push_back(view->rank());
  finding.operation = OperationIn(first.open);
  finding.message = fmt::format("rank {} {} {}", first.rank(), FateOf(first), InOrWhile(first));
  if (!first.evidence->error.empty()) {
    finding.message += fmt::format(", after it had reported: {}", OneLine(first.evidence->error));
  }
  finding.message += AlsoClause(finding.culprits, first.rank(), cause);
  finding.message += waiting_clause;
  finding.remedy = RemedyOf(cause, first);
  return finding;
}

}  // namespace

std::vector<Finding> FindDepartures(const Situation& situation, const Stuck& stuck) {
  const std::string waiting_clause = WaitingClause(situation, stuck);
  const std::vector<bool> missed = FindMissed(situation);
  std::map<Cause, std::vector<const RankView*>> gone;
  for (std::size_t i = 0; i < situation.views.size(); ++i) {
    const RankView& view = situation.views[i];
    if (!IsDeparted(view)) continue;
    if (FinishedInOrder(view) && !missed[i]) continue;
    gone[CauseOf(view)].push_back(&view);
  }
  std::vector<Finding> findings;
  // A crash explains the others' ends better than the reverse, and so on down.
  for (const Cause cause :
       {Cause::kRankCrashed, Cause::kRankKilled, Cause::kRankExited, Cause::kRankStopped}) {
    const auto found = gone.find(cause);
    if (found == gone.end()) continue;
    const bool first = findings.empty();
    findings.push_back(DepartureOf(cause, found->second, first ? waiting_clause : ""));
  }
  return findings;
}

namespace {

// Its error came from a collective that a rank had not completed which failed elsewhere: outside of
// any collective, as a program does that raises an exception.
bool FailedForLackOfPeer(const Situation& situation, const RankView& view) {
  const journal::JournalEvent* const failed = FirstErrorOf(view);
  if (failed == nullptr) return false;
  return std::any_of(situation.views.begin(), situation.views.end(), [&](const RankView& peer) {
    if (&peer == &view || !Failed(peer) || FirstErrorOf(peer) != nullptr) return false;
    const Track* track = peer.TrackOf(*failed);
    return track == nullptr ? peer.complete() : track->next <= failed->sequence;
  });
}

// One of its peers failed for a reason that comes before its own.
bool EchoesAnError(const Situation& situation, const RankView& view) {
  if (view.evidence->error.empty()) return false;
  return std::any_of(situation.views.begin(), situation.views.end(), [&](const RankView& peer) {
    return Failed(peer) && SaysLess(view.evidence->error, peer.evidence->error);
  });
}

// Its error came while a communicator was made, the world's or another.
bool CouldNotConnect(const RankView& view) {
  return Failed(view) && view.phase == journal::Phase::kConnect &&
         (view.tracks.empty() || view.failed_split != nullptr);
}

// Connecting takes all ranks: one that failed elsewhere is missing in it.
bool FailedElsewhere(const Situation& situation) {
  return std::any_of(situation.views.begin(), situation.views.end(),
                     [](const RankView& view) { return Failed(view) && !CouldNotConnect(view); });
}

bool WaitedInVain(std::string_view error) {
  constexpr std::string_view kWords[] = {"in time", "imed out", "deadline"};
  return std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view words) {
    return error.find(words) != std::string_view::npos;
  });
}

// Who did not even begin to connect, when all that the others say is that somebody did not come.
std::vector<int> WhoDidNotCome(const Situation& situation) {
  std::vector<int> missing;
  for (const RankView& view : situation.views) {
    if (Failed(view) && !(CouldNotConnect(view) && WaitedInVain(view.evidence->error))) return {};
    const bool begun = view.phase != journal::Phase::kStart || !view.tracks.empty();
    if (OwesProgress(view) && view.complete() && !begun) missing.push_back(view.rank());
  }
  return missing;
}

void MakeInitFailure(const Situation& situation, const RankView& first, const std::string& text,
                     Finding& finding) {
  finding.cause = Cause::kInitFailure;
  const std::string what =
      first.failed_split != nullptr ? " in " + DescribeInvocation(*first.failed_split) : "";
  finding.message = fmt::format("rank {} could not connect{}: {}", first.rank(), what,
                                text.empty() ? "no text came with it" : text);
  finding.remedy = fmt::format(
      "Check on rank {}'s host the interface and the address that the library is to use, its "
      "limits (open files, memory), and that the other hosts reach it.",
      first.rank());
  const std::vector<int> missing = WhoDidNotCome(situation);
  if (missing.empty()) return;
  finding.message += fmt::format("; {} did not begin to connect", FormatRanks(missing));
  finding.remedy =
      fmt::format("See in rank {}'s stored stack what keeps it from connecting.", missing.front());
  finding.culprits = missing;
  finding.proved = false;  // it is only late, perhaps
}

// The earlier one of two calls on a communicator is where it began.
bool FailedEarlier(const RankView& a, const RankView& b) {
  if (!a.newest_collective_failed() || !b.newest_collective_failed()) return false;
  const journal::JournalEvent &of_a = *a.last_collective, &of_b = *b.last_collective;
  return of_a.communicator == of_b.communicator && of_a.sequence < of_b.sequence;
}

}  // namespace

std::vector<Finding> FindErrors(const Situation& situation, const Stuck& stuck) {
  const RankView* first = nullptr;
  Finding finding;
  std::vector<int> because;
  const bool elsewhere = FailedElsewhere(situation);
  for (const RankView& view : situation.views) {
    if (!Failed(view)) continue;
    if (FailedForLackOfPeer(situation, view) || EchoesAnError(situation, view) ||
        (elsewhere && CouldNotConnect(view))) {
      because.push_back(view.rank());
      continue;
    }
    if (first == nullptr || FailedEarlier(view, *first)) first = &view;
    finding.culprits.push_back(view.rank());
  }
  if (first == nullptr) return {};
  finding.cause = Cause::kRankFailed;
  // That a connection ended is an effect: its cause is elsewhere, and not known.
  finding.proved = !IsEcho(first->evidence->error);
  if (first->newest_collective_failed()) finding.operation = *first->last_collective;
  const std::string text = OneLine(first->evidence->error);
  finding.message = fmt::format("rank {} reported an error {}: {}", first->rank(),
                                InOrWhile(*first), text.empty() ? "no text came with it" : text);
  finding.remedy = fmt::format(
      "The text is the library's own: look it up in its documentation, and read rank {}'s standard "
      "error for what it printed before.",
      first->rank());
  const std::string also = AlsoClause(finding.culprits, first->rank(), Cause::kRankFailed);
  if (CouldNotConnect(*first)) MakeInitFailure(situation, *first, text, finding);
  finding.message += also;
  if (!because.empty()) {
    finding.message += fmt::format("; {} failed {} because of that", FormatRanks(because),
                                   CouldNotConnect(*first) ? "to connect" : "in a collective");
  }
  finding.message += WaitingClause(situation, stuck);
  NameBrokenLink(situation, finding);
  return {finding};
}

}  // namespace lockstep::verdict::finders
