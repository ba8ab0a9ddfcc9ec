// Different operations in the same position of a communicator: no rank can go on, or the result is
// wrong; either way the program is.
#include <fmt/core.h>

#include <algorithm>

#include "core/journal/purpose.h"
#include "core/verdict/finders/find.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

bool AreMessage(const JournalEvent& a, const JournalEvent& b) {
  return verdict::AreMessage(OperationOf(a), OperationOf(b));
}

Cause CauseOf(const JournalEvent& a, const JournalEvent& b) {
  if (AreMessage(a, b)) return a.type != b.type ? Cause::kTypeMismatch : Cause::kCountMismatch;
  if (a.collective != b.collective) return Cause::kCollectiveMismatch;
  if (a.collective == Collective::kBarrier) return Cause::kCollectiveMismatch;  // of two purposes
  if (a.type != b.type) return Cause::kTypeMismatch;
  if (a.count != b.count) return Cause::kCountMismatch;
  const collective::CollectiveInfo& info = collective::InfoOf(a.collective);
  if (info.rooted && a.root != b.root) return Cause::kRootMismatch;
  if (info.reduces && a.reduction != b.reduction) return Cause::kReductionMismatch;
  return Cause::kCollectiveMismatch;
}

std::vector<int> RanksOf(const Situation& situation, const Mismatch::Party& party) {
  return RanksOf(ViewsAt(situation.views, party.members));
}

// "rank 0 is in all_reduce 5 (…)", "ranks 1 and 2 went through barrier 1 (…)".
std::string Calls(const Situation& situation, const Mismatch::Party& party) {
  const std::vector<int> ranks = RanksOf(situation, party);
  const std::string call = DescribeInvocation(*party.event);
  if (party.event->kind == EventKind::kEnd) {
    return fmt::format("{} went through {}", FormatRanks(ranks), call);
  }
  return fmt::format("{} {} in {}", FormatRanks(ranks), Verb(ranks, "is", "are"), call);
}

// "f32 x 256 sum": what differs between calls of one collective.
std::string ArgumentsOf(const JournalEvent& event) {
  const std::string call = collective::Describe(OperationOf(event));
  return call.substr(std::min(call.find(' ') + 1, call.size()));
}

// "rank 1 (host node2, pid 4711) receives f32 x 8 in recv 1 from peer 0, rank 0 sends f32 x 16".
Headline HeadlineOfMessage(const Situation& situation, const Mismatch& mismatch) {
  const auto of = [&](Collective collective) -> const Mismatch::Party& {
    return mismatch.parties[mismatch.parties[0].event->collective == collective ? 0 : 1];
  };
  const auto elements = [](const Mismatch::Party& party) {
    return fmt::format("{} x {}", collective::NameOf(party.event->type), party.event->count);
  };
  const Mismatch::Party &sent = of(Collective::kSend), &received = of(Collective::kRecv);
  Headline headline("{} receives {} in {}", Who(ViewsAt(situation.views, received.members)),
                    elements(received), NameOfInvocation(*received.event));
  headline.Add(", {} sends {}", FormatRanks(RanksOf(situation, sent)), elements(sent));
  return headline;
}

// "rank 1 (host node2, pid 4711) calls barrier 6 where ranks 0 and 2 call all_reduce 50", "rank 1
// calls all_reduce 50 with f32 x 8 sum, rank 0 with f32 x 256 sum".
Headline HeadlineOf(const Situation& situation, const Mismatch& mismatch) {
  const Mismatch::Party &most = mismatch.parties[0], &next = mismatch.parties[1];
  if (AreMessage(*most.event, *next.event)) return HeadlineOfMessage(situation, mismatch);
  const Views views = ViewsAt(situation.views, next.members);
  const std::string who = fmt::format("{} {}", Who(views), views.size() == 1 ? "calls" : "call");
  const std::vector<int> others = RanksOf(situation, most);
  Headline headline;
  if (most.event->collective == next.event->collective &&
      !SameCall(OperationOf(*most.event), OperationOf(*next.event))) {
    headline =
        Headline("{} {} with {}", who, NameOfInvocation(*next.event), ArgumentsOf(*next.event));
    headline.Add(", {} with {}", FormatRanks(others), ArgumentsOf(*most.event));
  } else {
    JournalEvent here = *next.event;
    here.communicator = kWorld;  // that of both is said once
    headline = Headline("{} {} where {} {} {}", who, NameOfInvocation(here), FormatRanks(others),
                        Verb(others, "calls", "call"), NameOfInvocation(*most.event));
  }
  if (mismatch.holds) headline.Add(": they cannot go on");
  return headline;
}

bool IsOfJoin(Purpose purpose) {
  return Purpose::kJoinAlive <= purpose && purpose <= Purpose::kJoinFinalSync;
}
bool IsOfTheProgram(Purpose purpose) {
  return purpose == Purpose::kBarrier || purpose == Purpose::kStep ||
         purpose == Purpose::kBatchNormForward || purpose == Purpose::kBatchNormBackward;
}

std::string RemedyOf(const Mismatch& mismatch, const std::vector<int>& culprits) {
  if (AreMessage(*mismatch.parties[0].event, *mismatch.parties[1].event)) {
    return fmt::format(
        "Compare what {} send and receive before it: both sides of a message need the same type "
        "and count, in the same order.",
        FormatRanks(culprits));
  }
  const Purpose a = journal::UnpackAnnotation(mismatch.parties[0].event->value).purpose;
  const Purpose b = journal::UnpackAnnotation(mismatch.parties[1].event->value).purpose;
  if ((IsOfJoin(a) && IsOfTheProgram(b)) || (IsOfJoin(b) && IsOfTheProgram(a))) {
    return "Call no collectives of your own inside join() (barriers, metrics, SyncBatchNorm): a "
           "rank that has joined answers only those of DistributedDataParallel; move them behind "
           "it.";
  }
  return fmt::format(
      "Compare what {} and the others call before sequence {}: every rank must call the same "
      "collectives with the same arguments in the same order.",
      FormatRanks(culprits), mismatch.sequence);
}

// No library can tell two calls apart that differ in nothing but what they are for.
std::string WhatDiffers(const Situation& situation, const JournalEvent& a, const JournalEvent& b) {
  if (SameCall(OperationOf(a), OperationOf(b))) {
    return "the same position and the same call, for different purposes; no library can tell the "
           "two apart: what the ranks get is wrong, without an error";
  }
  const std::string effect = ExplainEffect(situation.semantics, OperationOf(a), OperationOf(b));
  if (AreMessage(a, b))
    return "one message, different arguments" + (effect.empty() ? "" : "; " + effect);
  return "the same position, different operations" + (effect.empty() ? "" : "; " + effect);
}

Finding DescribeMismatch(const Situation& situation, const Mismatch& mismatch) {
  const Mismatch::Party& most = mismatch.parties[0];
  const Mismatch::Party& next = mismatch.parties[1];
  std::size_t all = 0;
  for (const Mismatch::Party& party : mismatch.parties) all += party.members.size();
  // Whom most agree with is right; without a majority nobody can say who is wrong.
  const bool majority = 2 * most.members.size() > all;
  Finding finding;
  // The parties may be the same call for different purposes.
  finding.cause = CauseOf(*most.event, *next.event);
  finding.proved = true;
  finding.operation = *next.event;
  for (const Mismatch::Party& party : mismatch.parties) {
    if (majority && &party == &most) continue;
    const std::vector<int> ranks = RanksOf(situation, party);
    finding.culprits.insert(finding.culprits.end(), ranks.begin(), ranks.end());
  }
  std::ranges::sort(finding.culprits);
  finding.headline = HeadlineOf(situation, mismatch);
  const std::size_t kinds = mismatch.parties.size();
  finding.message = fmt::format("{}, {}{}: {}", Calls(situation, most), Calls(situation, next),
                                kinds > 2 ? fmt::format(" (and {} more kinds)", kinds - 2) : "",
                                WhatDiffers(situation, *most.event, *next.event));
  finding.remedy = RemedyOf(mismatch, finding.culprits);
  return finding;
}

}  // namespace

std::vector<Finding> DescribeMismatches(const Situation& situation,
                                        const std::vector<Mismatch>& mismatches) {
  std::vector<Finding> findings;
  for (const Mismatch& mismatch : mismatches) {
    findings.push_back(DescribeMismatch(situation, mismatch));
  }
  return findings;
}

}  // namespace lockstep::verdict::finders
