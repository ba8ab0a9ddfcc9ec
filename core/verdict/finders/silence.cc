// Nobody is gone, nobody failed, and nothing happens: all evidence is silence, so every finding of
// this file is a suspicion and needs the deadline.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>

#include "core/verdict/finders/find.h"
#include "core/verdict/link_traffic.h"
#include "core/verdict/messages.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

// The evidence without the stack, which reports print once for all ranks that have it.
std::string WithoutStack(const std::string& system) {
  return system.substr(0, std::min(system.find("; stack: "), system.size()));
}

// What the operating system says of it, as the end of a sentence, or nothing.
std::string SystemClause(const RankView& view) {
  const std::string& system = view.evidence->system;
  if (system.empty()) return view.evidence->asleep ? " (asleep)" : "";
  const bool say = view.evidence->asleep && !system.starts_with("asleep");
  return fmt::format(" ({}{})", say ? "asleep: " : "", ShortLine(WithoutStack(system)));
}

// The earliest operation of a group that ranks wait in, and how every member stands to it.
struct Standstill {
  const JournalEvent* operation = nullptr;  // nullptr: no rank waits in it
  int group = kUnknownGroup;
  Views waiting;  // their streams have reached it, and they have not left it
  Views missing;  // alive, and not so far
  Views left;
  bool incomplete = false;  // a rank of which nothing is known may be missing
  double seconds = 0;       // longest silence of a waiting rank; if none waits, of a missing one
  // Shortest silence of a waiting rank that was kept from a processor, without that time.
  double awake_seconds = std::numeric_limits<double>::infinity();
};

CallStep StepAt(const RankView& view, int group, std::uint64_t sequence) {
  const Track* track = view.On(group);
  return track == nullptr ? CallStep::kNotEntered : track->StepAt(sequence);
}

void Sort(Standstill& found, const RankView& view, CallStep step) {
  if (view.evidence->state == ProcessState::kLost) {
    found.incomplete = true;
  } else if (step == CallStep::kLeft) {
    found.left.push_back(&view);
  } else if (step < CallStep::kStarted) {
    found.missing.push_back(&view);
  } else {
    found.waiting.push_back(&view);
    found.seconds = std::max(found.seconds, view.evidence->seconds_silent);
    const double starved_s = view.evidence->starved_s;
    if (starved_s > 0) {
      found.awake_seconds =
          std::min(found.awake_seconds, view.evidence->seconds_silent - starved_s);
    }
  }
}

Standstill StandstillOf(const Situation& situation, int group) {
  Standstill found;
  found.group = group;
  const auto& members = situation.GroupAt(group).members;
  for (const std::size_t i : members) {
    const RankView& view = situation.views[i];
    if (!OwesProgress(view) || !view.waits_in(group)) continue;
    if (found.operation == nullptr || view.open->sequence < found.operation->sequence) {
      found.operation = view.open;
    }
  }
  if (found.operation == nullptr) return found;
  const std::uint64_t sequence = found.operation->sequence;
  for (const std::size_t i : members) {
    const RankView& view = situation.views[i];
    Sort(found, view, StepAt(view, group, sequence));
  }
  if (found.waiting.empty()) {
    for (const RankView* view : found.missing) {
      found.seconds = std::max(found.seconds, view->evidence->seconds_silent);
    }
  }
  return found;
}

std::string WhatInstead(const RankView& view, const Standstill& standstill) {
  if (view.waits_in(standstill.group)) return "has queued it, but its stream has not reached it";
  if (view.evidence->idle) return "waits for an order";
  if (view.open != nullptr) return "waits in " + DescribeInvocation(*view.open) + " instead";
  const bool message = standstill.operation->communicator >= kFirstLane;
  return fmt::format("has not {} it: {}, last sign of life {} ago", message ? "come to" : "entered",
                     WhereOf(view), Seconds(view.evidence->seconds_silent));
}

// What those who are missing are to call, in a headline: of a message its other end.
std::string MissingCall(const Situation& situation, const Standstill& standstill) {
  const JournalEvent& operation = *standstill.operation;
  if (operation.communicator < kFirstLane) return NameOfInvocation(operation);
  const std::vector<int>& from_to = situation.GroupAt(standstill.group).ranks;
  return operation.collective == collective::Collective::kSend
             ? fmt::format("its receive from rank {}", from_to[0])
             : fmt::format("its send to rank {}", from_to[1]);
}

// "has not entered all_reduce 50: asleep in nanosleep()". `call`: see MissingCall.
std::string NotInItBriefly(const RankView& view, const Standstill& standstill,
                           const std::string& call) {
  if (view.waits_in(standstill.group)) {
    return fmt::format("has queued {}, but its stream has not reached it", call);
  }
  if (view.evidence->idle) return fmt::format("waits for an order, not in {}", call);
  if (view.open != nullptr) {
    return fmt::format("waits in {} instead of {}", NameOfInvocation(*view.open), call);
  }
  const std::string system = SystemClauseBriefly(view);
  return fmt::format("has not entered {}{}{}", call, system.empty() ? ": " : system,
                     system.empty() ? Doing(view.phase) : "");
}

std::string BusyRemedy(const RankView& view) {
  return fmt::format(
      "See in rank {}'s stored stack what it does; if that work may take so long, give -T (the "
      "deadline) more seconds.",
      view.rank());
}

// With how long the first rank is silent, unless that leaves no room for those who wait.
Headline WithSilence(const std::string& sentence, const RankView& first,
                     const std::string& waiting) {
  const Headline bare(sentence);
  const Headline silent = Headline(bare).Add(", silent " + Seconds(first.evidence->seconds_silent));
  const Headline whole = Headline(silent).Add(waiting);
  if (waiting.empty() || whole != silent) return whole;
  const Headline without = Headline(bare).Add(waiting);
  return without != bare ? without : silent;
}

Headline MissingHeadline(const Situation& situation, const Standstill& standstill) {
  const RankView& first = *standstill.missing.front();
  const std::string call = MissingCall(situation, standstill);
  const std::string waiting =
      WaitingClause(RanksOf(standstill.waiting), RanksOf(standstill.missing));
  if (standstill.missing.size() == 1) {
    return WithSilence(fmt::format("{} {}", Who({&first}), NotInItBriefly(first, standstill, call)),
                       first, waiting);
  }
  return Headline("{} are not in {}", Who(standstill.missing), call).Add(waiting);
}

std::string MissingMessage(const Standstill& standstill) {
  const RankView& first = *standstill.missing.front();
  const std::string call = DescribeInvocation(*standstill.operation);
  const std::vector<int> waiting = RanksOf(standstill.waiting);
  const std::string what =
      waiting.empty()
          ? fmt::format("no rank has begun {}", call)
          : fmt::format("{} {} for {} in {}", FormatRanks(waiting), Verb(waiting, "waits", "wait"),
                        FormatRanks(RanksOf(standstill.missing)), call);
  return fmt::format("{} for {}; rank {} {}{}", what, Seconds(standstill.seconds), first.rank(),
                     WhatInstead(first, standstill), SystemClause(first));
}

// Some wait for those that have not entered it; or all have only queued it, behind other work of
// their streams.
Finding MissingRanks(const Situation& situation, const Standstill& standstill) {
  const RankView& first = *standstill.missing.front();
  const bool busy =
      !first.evidence->idle && (first.open == nullptr || first.waits_in(standstill.group));
  return {
      .cause = busy ? Cause::kRankBusy : Cause::kUnknown,
      .culprits = RanksOf(standstill.missing),
      .message = MissingMessage(standstill),
      .remedy = busy ? BusyRemedy(first)
                     : fmt::format(
                           "Compare what rank {} and the others call: the journals do not show why "
                           "it is not in this collective.",
                           first.rank()),
      .operation = OperationIn(standstill.operation),
      .headline = MissingHeadline(situation, standstill)};
}

bool IsAsleep(const RankView* view) { return view->evidence->asleep; }

Headline AsleepHeadline(const Standstill& standstill, const Views& asleep) {
  Views others = standstill.waiting;
  std::erase_if(others, IsAsleep);
  const std::vector<int> ranks = RanksOf(asleep);
  const std::string system = asleep.size() == 1 ? SystemClauseBriefly(*asleep.front()) : ": asleep";
  return WithSilence(fmt::format("{} {} in {}{}", Who(asleep), Verb(ranks, "hangs", "hang"),
                                 NameOfInvocation(*standstill.operation), system),
                     *asleep.front(), WaitingClause(RanksOf(others), ranks));
}

Headline StallHeadline(const Standstill& standstill) {
  return Headline("{} {} in {} for {}", Who(standstill.waiting),
                  Verb(RanksOf(standstill.waiting), "hangs", "hang"),
                  NameOfInvocation(*standstill.operation), Seconds(standstill.seconds))
      .Add(standstill.group == 0 ? "; all ranks entered it" : "; all its ranks entered it");
}

Finding Stall(const Situation& situation, const Standstill& standstill) {
  Views asleep = standstill.waiting;
  std::erase_if(asleep, std::not_fn(IsAsleep));
  // Asleep among ranks that are awake is suspicious; all asleep is how some libraries wait.
  const bool named = !asleep.empty() && asleep.size() < standstill.waiting.size();
  Finding finding{.cause = Cause::kTransportStall};
  if (named) finding.culprits = RanksOf(asleep);
  finding.operation = OperationIn(standstill.operation);
  finding.headline = named ? AsleepHeadline(standstill, asleep) : StallHeadline(standstill);
  finding.message =
      fmt::format("all {} entered {} and {} of {} did not leave it for {}",
                  standstill.group == 0 ? "ranks" : "its ranks",
                  DescribeInvocation(*standstill.operation), standstill.waiting.size(),
                  standstill.waiting.size() + standstill.left.size(), Seconds(standstill.seconds));
  if (!standstill.left.empty()) {
    finding.message += fmt::format("; {} left it", FormatRanks(RanksOf(standstill.left)));
  }
  if (named) {
    finding.message +=
        fmt::format("; {} {} asleep while the others try to go on{}", FormatRanks(finding.culprits),
                    Verb(finding.culprits, "is", "are"), SystemClause(*asleep.front()));
  } else {
    const RankView& first = *standstill.waiting.front();
    finding.message +=
        fmt::format("; {} in it, rank {} for example{}", FormatRanks(RanksOf(standstill.waiting)),
                    first.rank(), SystemClause(first));
  }
  finding.remedy =
      named ? fmt::format(
                  "See in rank {}'s stored stack what it sleeps in; it is not the library "
                  "waiting for its peers.",
                  finding.culprits.front())
            : "Compare the stored stacks of all ranks and the error counters of the links between "
              "them; the journals alone do not tell who is at fault.";
  NameStalledLinks(situation, finding);
  return finding;
}

// Ranks silent beyond the deadline outside any collective that a standstill speaks of.
Views SilentElsewhere(const Situation& situation, const std::vector<Standstill>& standstills) {
  Views silent;
  for (const RankView& view : situation.views) {
    if (!OwesProgress(view) || view.waits_in_group() || !situation.overdue(view)) continue;
    const bool named = std::ranges::any_of(standstills, [&](const auto& one) {
      return std::ranges::binary_search(one.missing, &view);
    });
    if (!named) silent.push_back(&view);
  }
  return silent;
}

// It waits in an operation of another group: what stops that stops this.
bool WaitsElsewhere(const RankView* view, int group) {
  return OwesProgress(*view) && view->waits_in_group() && !view->waits_in(group);
}

bool IsConsequence(const Standstill& standstill) {
  return !standstill.missing.empty() &&
         WaitsElsewhere(standstill.missing.front(), standstill.group);
}

std::vector<Standstill> StandstillsOf(const Situation& situation) {
  std::vector<Standstill> standstills;
  for (std::size_t g = 0; g < situation.groups.size(); ++g) {
    Standstill standstill = StandstillOf(situation, static_cast<int>(g));
    if (standstill.operation == nullptr) continue;
    if (standstill.seconds < situation.deadline_seconds) continue;
    const bool all_came =
        standstill.missing.empty() && standstill.left.empty() && !standstill.incomplete;
    if (all_came && standstill.awake_seconds < situation.deadline_seconds) continue;
    // Members are in the order in which the group names them.
    std::ranges::sort(standstill.missing);
    // Who waits elsewhere is to blame only when nobody else is.
    const auto elsewhere = [g](const RankView* view) {
      return WaitsElsewhere(view, static_cast<int>(g));
    };
    if (!std::ranges::all_of(standstill.missing, elsewhere)) {
      std::erase_if(standstill.missing, elsewhere);
    }
    standstills.push_back(std::move(standstill));
  }
  return standstills;
}

// Those that follow from no other; all where each follows from one.
std::vector<Standstill> FirstOf(const std::vector<Standstill>& standstills) {
  std::vector<Standstill> first;
  std::ranges::copy_if(standstills, std::back_inserter(first), std::not_fn(IsConsequence));
  return first.empty() ? standstills : first;
}

void AddNew(Finding finding, std::vector<Finding>& findings) {
  const bool known = std::ranges::any_of(findings, [&](const Finding& other) {
    return other.cause == finding.cause && other.culprits == finding.culprits;
  });
  if (!known) findings.push_back(std::move(finding));
}

// Who waits is no culprit, and nobody knows for whom.
Finding OtherCommunicator(const Views& waiting) {
  const std::vector<int> ranks = RanksOf(waiting);
  Finding finding{.cause = Cause::kUnknown};
  finding.message = fmt::format(
      "{} {} in {} for {}; the journals do not show who else belongs to that communicator",
      FormatRanks(ranks), Verb(ranks, "waits", "wait"), DescribeInvocation(*waiting.front()->open),
      Seconds(waiting.front()->evidence->seconds_silent));
  finding.headline = Headline("{} {} in {} for {}", Who(waiting), Verb(ranks, "waits", "wait"),
                              NameOfInvocation(*waiting.front()->open),
                              Seconds(waiting.front()->evidence->seconds_silent));
  finding.headline.Add("; who else belongs to it is not known");
  finding.remedy = "Compare the stored stacks and the histories of these ranks.";
  return finding;
}

bool Connects(const RankView& view) {
  return view.phase == Phase::kStart || view.phase == Phase::kConnect;
}

// Those that connect wait for it, and it is not silent for so long.
bool OneMayCome(const Situation& situation) {
  return std::ranges::any_of(situation.views, [&](const RankView& view) {
    return OwesProgress(view) && view.open == nullptr && Connects(view) && !situation.overdue(view);
  });
}

Finding InitFailure(const Situation& situation, const Views& connecting) {
  // Those that did not even begin to connect are what the others wait for.
  Views behind = connecting;
  std::erase_if(behind, [](const RankView* view) { return view->phase != Phase::kStart; });
  if (behind.empty()) behind = connecting;
  Finding finding{.cause = Cause::kInitFailure, .culprits = RanksOf(behind)};
  const RankView& first = *behind.front();
  finding.headline = Headline("{} could not connect in time: {} for {}", Who(behind),
                              Doing(first.phase), Seconds(first.evidence->seconds_silent));
  finding.message =
      fmt::format("{} of {} ranks could not connect in time: {} {} for {}{}", connecting.size(),
                  situation.views.size(), FormatRanks(finding.culprits), Doing(first.phase),
                  Seconds(first.evidence->seconds_silent), SystemClause(first));
  finding.remedy =
      first.phase == Phase::kStart
          ? "See in their stacks what these ranks wait for. Give a longer --timeout if they only "
            "need more time."
          : "Check that the hosts reach each other on the interface that the library chose "
            "(firewall, host names, library variables that name an interface).";
  NameStalledLinks(situation, finding);
  return finding;
}

Finding Busy(const Views& silent) {
  const RankView& first = *silent.front();
  Finding finding{.cause = Cause::kRankBusy, .culprits = RanksOf(silent)};
  finding.headline =
      Headline("{} {} silent for {}", Who(silent), Verb(finding.culprits, "is", "are"),
               Seconds(first.evidence->seconds_silent));
  const std::string other = silent.size() == 1 ? "" : fmt::format("rank {} ", first.rank());
  finding.headline.Add(", " + other + InOrWhile(first, NameOfInvocation));
  finding.headline.Add(SystemClauseBriefly(first));
  finding.message =
      fmt::format("{} {} silent for {}: rank {} {}{}", FormatRanks(finding.culprits),
                  Verb(finding.culprits, "is", "are"), Seconds(first.evidence->seconds_silent),
                  first.rank(), WhereOf(first), SystemClause(first));
  finding.remedy = BusyRemedy(first);
  return finding;
}

}  // namespace

std::vector<Finding> FindSilence(const Situation& situation) {
  std::vector<Finding> findings, stalls;
  const std::vector<Standstill> standstills = StandstillsOf(situation);
  for (const Standstill& standstill : FirstOf(standstills)) {
    if (!standstill.missing.empty()) {
      AddNew(MissingRanks(situation, standstill), findings);
    } else if (!standstill.incomplete) {
      // Posted calls that all entered may be done, and nobody has asked.
      (situation.nonblocking_calls ? stalls : findings).push_back(Stall(situation, standstill));
    }
  }
  Views elsewhere, connecting, busy;
  for (const RankView* view : SilentElsewhere(situation, standstills)) {
    (view->open != nullptr ? elsewhere : Connects(*view) ? connecting : busy).push_back(view);
  }
  if (!connecting.empty() && !OneMayCome(situation)) {
    findings.push_back(InitFailure(situation, connecting));
  }
  if (!busy.empty()) findings.push_back(Busy(busy));
  if (!elsewhere.empty()) findings.push_back(OtherCommunicator(elsewhere));
  return findings.empty() ? stalls : findings;
}

}  // namespace lockstep::verdict::finders
