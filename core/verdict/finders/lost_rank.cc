// Ranks that are gone, stopped or failed: facts, not suspicions.
#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>

#include "core/verdict/finders/find.h"
#include "core/verdict/link_traffic.h"
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
      "Read rank {}'s standard error just before the end. Look for exit() in the program, the "
      "library, its plugins or a preloaded object.",
      rank);
}

// Who waits for ever because somebody is gone.
Views WaitersOf(const Situation& situation, const Stuck& stuck) {
  Views waiting;
  for (std::size_t i = 0; i < situation.views.size(); ++i) {
    if (stuck.root[i] != Stuck::kNobody) waiting.push_back(&situation.views[i]);
  }
  return waiting;
}

// … because one of these is: that one is at the end of its chain, or misses in its call, too.
Views WaitersFor(const Situation& situation, const Stuck& stuck, const Views& gone) {
  const std::unordered_set<const RankView*> those(gone.begin(), gone.end());
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::vector<std::uint64_t> missed(situation.groups.size(), kNone);  // the earliest call
  for (std::size_t g = 0; g < missed.size(); ++g) {
    for (const std::size_t member : situation.groups[g].members) {
      const RankView& view = situation.views[member];
      if (!those.contains(&view)) continue;
      const Track* const track = view.On(static_cast<int>(g));
      if (track != nullptr || view.complete())
        missed[g] = std::min(missed[g], track == nullptr ? 0 : track->next);
    }
  }
  return ViewsWhere(situation.views, [&](const RankView& view) {
    const auto i = static_cast<std::size_t>(&view - situation.views.data());
    if (stuck.root[i] == Stuck::kNobody) return false;
    const RankView& root = situation.views[static_cast<std::size_t>(stuck.root[i])];
    if (those.contains(&root) || view.open == nullptr) return true;
    const auto group = static_cast<std::size_t>(view.open_group);
    const auto size = static_cast<int>(situation.groups[group].members.size());
    return stuck.waits_for[i] == stuck.root[i] && missed[group] <= view.open->sequence &&
           NeedsOf(situation.semantics, OperationOf(*view.open), false, size) == Needs::kAll;
  });
}

std::string WaitingClauseInFull(const Views& waiting) {
  if (waiting.empty()) return "";
  const std::vector<int> ranks = RanksOf(waiting);
  const std::string_view verb = Verb(ranks, "waits", "wait");
  const RankView& first = *waiting.front();
  if (first.open == nullptr) {
    return fmt::format("; {} {} for it to connect", FormatRanks(ranks), verb);
  }
  return fmt::format(
      "; {} {} for it in {}", FormatRanks(ranks), verb,
      ranks.size() == 1 ? DescribeInvocation(*first.open) : "this or a later collective");
}

// Adds the waiting ranks to the headline and to the message.
void NameWaiters(const Views& waiting, Finding& finding) {
  finding.headline.Add(WaitingClause(RanksOf(waiting), finding.culprits));
  finding.message += WaitingClauseInFull(waiting);
}

// Nobody waits for it where a library tells its peers.
void NameFailed(const Situation& situation, Finding& finding) {
  const Views failed = ViewsWhere(situation.views, Failed);
  if (!failed.empty()) finding.headline.Add("; {} failed, too", FormatRanks(RanksOf(failed)));
}

// What became of several ranks alike.
std::string_view Words(Cause cause) {
  static const std::map<Cause, std::string_view> kWords = {{Cause::kRankCrashed, "crashed"},
                                                           {Cause::kRankKilled, "died by a signal"},
                                                           {Cause::kRankExited, "exited"},
                                                           {Cause::kRankStopped, "stopped"},
                                                           {Cause::kRankFailed, "reported errors"}};
  return kWords.at(cause);
}

// "; ranks 2-5 were killed too": those of the culprits that the finding has not named.
std::string AlsoClause(std::vector<int> others, int named, Cause cause) {
  std::erase(others, named);
  if (others.empty()) return "";
  return fmt::format("; {} {} too", FormatRanks(others), Words(cause));
}

// "rank 1 (host node2, pid 4711) was killed by SIGKILL in all_reduce 50".
Headline HeadlineOf(Cause cause, const Views& gone, const RankView& first) {
  const std::string where = InOrWhile(first, NameOfInvocation);
  if (gone.size() == 1) {
    return Headline("{} {} {}", Who(gone), FateOf(first), where);
  }
  Headline headline(
      fmt::format("{} {}{}", Who(gone), cause == Cause::kRankStopped ? "are " : "", Words(cause)));
  headline.Add(", rank {} {}", first.rank(), where);
  return headline;
}

Finding DepartureOf(Cause cause, const Views& gone, const Views& waiting) {
  const RankView& first = *gone.front();
  Finding finding{.cause = cause,
                  .culprits = RanksOf(gone),
                  .proved = true,
                  .operation = OperationIn(first.open)};
  finding.headline = HeadlineOf(cause, gone, first);
  finding.message = fmt::format("rank {} {} {}", first.rank(), FateOf(first), InOrWhile(first));
  if (!first.evidence->error.empty()) {
    finding.message += fmt::format(", after it had reported: {}", ShortLine(first.evidence->error));
  }
  finding.message += AlsoClause(finding.culprits, first.rank(), cause);
  NameWaiters(waiting, finding);
  finding.remedy = RemedyOf(cause, first);
  return finding;
}

}  // namespace

std::vector<Finding> FindDepartures(const Situation& situation, const Stuck& stuck) {
  const std::vector<bool> missed = FindMissed(situation, stuck);
  std::map<Cause, Views> gone;
  for (std::size_t i = 0; i < situation.views.size(); ++i) {
    const RankView& view = situation.views[i];
    if (!IsDeparted(view)) continue;
    if (FinishedInOrder(view) && !missed[i]) continue;
    gone[CauseOf(view)].push_back(&view);
  }
  std::vector<Finding> findings;
  std::set<const RankView*> told;  // who waits, and was named
  // A crash explains the others' ends better than the reverse, and so on down.
  for (const Cause cause :
       {Cause::kRankCrashed, Cause::kRankKilled, Cause::kRankExited, Cause::kRankStopped}) {
    const auto found = gone.find(cause);
    if (found == gone.end()) continue;
    Views waiting = WaitersFor(situation, stuck, found->second);
    std::erase_if(waiting, [&](const RankView* waiter) { return !told.insert(waiter).second; });
    findings.push_back(DepartureOf(cause, found->second, waiting));
  }
  if (!findings.empty() && told.empty()) NameFailed(situation, findings.front());
  return findings;
}

namespace {

// Its error came from a collective that a rank had not completed which failed elsewhere: outside of
// any collective, as a program does that raises an exception.
bool FailedForLackOfPeer(const Situation& situation, const RankView& view) {
  const JournalEvent* const failed = FirstErrorOf(view);
  if (failed == nullptr) return false;
  return std::ranges::any_of(situation.views, [&](const RankView& peer) {
    if (&peer == &view || !Failed(peer) || FirstErrorOf(peer) != nullptr) return false;
    if (IsEcho(peer.evidence->error) && SaysLess(peer.evidence->error, view.evidence->error)) {
      return false;  // an effect itself
    }
    const Track* track = peer.TrackOf(*failed);
    return track == nullptr ? peer.complete() : track->next <= failed->sequence;
  });
}

// Its error came while a communicator was made, the world's or another.
bool CouldNotConnect(const RankView& view) {
  return Failed(view) && view.phase == Phase::kConnect &&
         (view.tracks.empty() || view.failed_split != nullptr);
}

// One of its peers failed for a reason that comes before its own.
bool EchoesAnError(const Situation& situation, const RankView& view) {
  if (view.evidence->error.empty()) return false;
  // Who waited in vain outside of any call waited for no peer.
  const bool in_call = FirstErrorOf(view) != nullptr || view.failed_split != nullptr ||
                       view.open != nullptr || CouldNotConnect(view);
  if (WaitedInVain(view.evidence->error) && !in_call) return false;
  return std::ranges::any_of(situation.views, [&](const RankView& peer) {
    return Failed(peer) && SaysLess(view.evidence->error, peer.evidence->error);
  });
}

// Connecting takes all ranks: one that failed elsewhere is missing in it.
bool FailedElsewhere(const Situation& situation) {
  return std::ranges::any_of(
      situation.views, [](const RankView& view) { return Failed(view) && !CouldNotConnect(view); });
}

// That a connection ended is an effect: its cause is elsewhere, and not known. Nor is it known who
// did not come, or came late, to what a rank gave up waiting for.
bool IsOfItself(std::string_view error) { return !IsEcho(error) && !WaitedInVain(error); }

// Who did not even begin to connect, when all that the others say is that somebody did not come.
Views WhoDidNotCome(const Situation& situation) {
  Views missing;
  for (const RankView& view : situation.views) {
    if (Failed(view) && !(CouldNotConnect(view) && WaitedInVain(view.evidence->error))) return {};
    const bool begun = view.phase != Phase::kStart || !view.tracks.empty();
    if (OwesProgress(view) && view.complete() && !begun) missing.push_back(&view);
  }
  return missing;
}

std::string ErrorClauseBriefly(const RankView& view) {
  constexpr std::size_t kWords = 6;
  const std::string words = FirstWords(view.evidence->error, kWords);
  return words.empty() ? "" : ": " + words;
}

std::string RemedyOfError(const RankView& view) {
  const std::string_view text =
      FirstErrorOf(view) != nullptr
          ? "The text is the library's own: look it up in its documentation"
      : view.open != nullptr ? "Follow what the text says"
                             : "It failed outside of any collective: follow what the text says";
  return fmt::format("{}, and read rank {}'s standard error for what it printed before.", text,
                     view.rank());
}

void MakeInitFailure(const Situation& situation, const RankView& first, const std::string& text,
                     Finding& finding) {
  finding.cause = Cause::kInitFailure;
  const std::string what =
      first.failed_split != nullptr ? " in " + DescribeInvocation(*first.failed_split) : "";
  finding.message = fmt::format("rank {} could not connect{}: {}", first.rank(), what,
                                text.empty() ? "no text came with it" : text);
  finding.headline = Headline(Who({&first}) + " could not connect");
  finding.headline.Add(ErrorClauseBriefly(first));
  finding.remedy = fmt::format(
      "Check on rank {}'s host the interface and the address that the library is to use, its "
      "limits (open files, memory), and that the other hosts reach it.",
      first.rank());
  const Views late = WhoDidNotCome(situation);
  if (late.empty()) return;
  const std::vector<int> missing = RanksOf(late);
  finding.message += fmt::format("; {} did not begin to connect", FormatRanks(missing));
  finding.headline = Headline(Who(late) + " did not begin to connect");
  finding.headline.Add("; rank {} could not connect", first.rank());
  finding.remedy =
      fmt::format("See in rank {}'s stored stack what keeps it from connecting.", missing.front());
  finding.culprits = missing;
  finding.proved = false;  // it is only late, perhaps
}

// The earlier one of two calls on a communicator is where it began.
bool FailedEarlier(const RankView& a, const RankView& b) {
  const JournalEvent *const of_a = FailedCallOf(a), *const of_b = FailedCallOf(b);
  if (of_a == nullptr || of_b == nullptr) return false;
  return of_a->communicator == of_b->communicator && of_a->sequence < of_b->sequence;
}

}  // namespace

std::vector<Finding> FindErrors(const Situation& situation, const Stuck& stuck) {
  const RankView* first = nullptr;
  Views failed;
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
    failed.push_back(&view);
  }
  if (first == nullptr) return {};
  Finding finding{.cause = Cause::kRankFailed, .culprits = RanksOf(failed)};
  finding.headline = HeadlineOf(Cause::kRankFailed, failed, *first);
  finding.headline.Add(ErrorClauseBriefly(*first));
  finding.proved = IsOfItself(first->evidence->error);
  finding.operation = OperationIn(FailedCallOf(*first));
  const std::string text = ShortLine(first->evidence->error);
  finding.message = fmt::format("rank {} reported an error {}: {}", first->rank(),
                                InOrWhile(*first), text.empty() ? "no text came with it" : text);
  finding.remedy = RemedyOfError(*first);
  const std::string also = AlsoClause(finding.culprits, first->rank(), Cause::kRankFailed);
  if (CouldNotConnect(*first)) MakeInitFailure(situation, *first, text, finding);
  finding.message += also;
  if (!because.empty()) {
    finding.message += fmt::format("; {} failed {} because of that", FormatRanks(because),
                                   CouldNotConnect(*first) ? "to connect" : "in a collective");
  }
  NameWaiters(WaitersOf(situation, stuck), finding);
  NameBrokenLink(situation, finding);
  return {finding};
}

}  // namespace lockstep::verdict::finders
