// Why a training program came to a standstill, from what its ranks said they were doing: the
// mistakes of DistributedDataParallel's users. Source: pytorch's forums and issues 33148, 38174
// (uneven inputs), 54059, 20611 (evaluation on one rank), 72434 (unused parameters).
#include <fmt/core.h>

#include <algorithm>

#include "core/journal/purpose.h"
#include "core/verdict/finders/explanation.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

// What a rank's journal says of its part in the matter.
struct Part {
  const RankView* view = nullptr;
  const JournalEvent* at = nullptr;  // the collective in question: it is, failed or was in it
  Annotation says = {};              // of `at`
  // Iteration and index of the newest bucket before `at`; iteration -1: it launched none, or
  // nobody can know (`knows` is false).
  Annotation bucket = {};
  bool knows = false;
  bool told_phases = false;  // that bucket was launched in a backward pass
  int backward_since = 0;    // backward passes that it began after that bucket
  bool over = false;         // its program is over, as it should end
};
using Parts = std::vector<Part>;
using Some = std::vector<const Part*>;

Some PartsWhere(const Parts& parts, auto holds) {
  Some some;
  for (const Part& part : parts) {
    if (holds(part)) some.push_back(&part);
  }
  return some;
}

const JournalEvent* InQuestion(const RankView& view, const std::vector<Mismatch>& mismatches) {
  if (!mismatches.empty()) {
    const Mismatch& mismatch = mismatches.front();
    return EventAt(view, mismatch.group, mismatch.sequence, mismatch.case_index);
  }
  if (view.open != nullptr) return view.waits_in(0) ? view.open : nullptr;
  return view.newest_collective_failed() ? view.last_collective : nullptr;
}

void FollowBuckets(Part& part) {
  const auto& events = part.view->evidence->journal.events;
  part.knows = part.view->complete();
  const JournalEvent* end = part.at != nullptr ? part.at : events.data() + events.size();
  for (; end != events.data(); --end) {
    const JournalEvent* const event = end - 1;
    if (event->kind == EventKind::kPhase && event->phase == Phase::kBackward) {
      ++part.backward_since;
    }
    if (event->kind != EventKind::kEnqueue && event->kind != EventKind::kStart) continue;
    const Annotation annotation = journal::UnpackAnnotation(event->value);
    if (annotation.purpose != Purpose::kBucket) continue;
    // The operation itself may be journaled more than once.
    if (part.at != nullptr && event->sequence == part.at->sequence) continue;
    part.bucket = annotation;
    part.knows = true;
    part.told_phases = event->phase == Phase::kBackward;
    return;
  }
}

// Empty when nobody speaks of training.
Parts PartsOf(const Situation& situation, const std::vector<Mismatch>& mismatches) {
  Parts parts;
  bool training = false;
  for (const RankView& view : situation.views) {
    Part part{.view = &view, .at = InQuestion(view, mismatches)};
    if (part.at != nullptr) part.says = journal::UnpackAnnotation(part.at->value);
    training = training || part.says.purpose != Purpose::kNone;
    part.over = FinishedInOrder(view) || (view.running() && view.evidence->idle);
    parts.push_back(part);
  }
  if (!training) return {};
  for (Part& part : parts) FollowBuckets(part);
  return parts;
}

// Of an iteration of training: all ranks that train take part in it.
bool IsOfIteration(const Part& part) {
  if (part.at == nullptr || part.says.iteration < 0) return false;
  switch (part.says.purpose) {
    case Purpose::kBucket:
    case Purpose::kUnusedBitmap:
    case Purpose::kBufferBroadcast:
    case Purpose::kRebuildOrder:
    case Purpose::kRebuildSizes:
    case Purpose::kPowerSgdFactorP:
    case Purpose::kPowerSgdFactorQ:
    case Purpose::kBatchNormForward:
    case Purpose::kBatchNormBackward:
      return part.at->phase != Phase::kJoinExit && part.at->phase != Phase::kEvaluate;
    default:
      return false;
  }
}

// A buffer broadcast that belongs to no training iteration still to come.
bool IsEvaluating(const Part& part) {
  if (part.at == nullptr || part.says.purpose != Purpose::kBufferBroadcast) return false;
  if (part.at->phase == Phase::kEvaluate) return true;
  return part.at->phase != Phase::kJoinExit && part.bucket.iteration >= 0 &&
         part.says.iteration <= part.bucket.iteration;
}

std::vector<int> RanksOf(const Some& parts) {
  std::vector<int> ranks;
  for (const Part* part : parts) ranks.push_back(part->view->rank());
  return ranks;
}

// "is in all_reduce 5 (…)", "went through …", "has finished", "is loading data".
std::string Doing(const Part& part) {
  if (part.at != nullptr) {
    const bool done = part.at->kind == EventKind::kEnd;
    return (done ? "went through " : "is in ") + DescribeInvocation(*part.at);
  }
  return part.over ? "has finished" : "is " + WhereOf(*part.view);
}

// Where calls come back before they are done, a rank goes on with its program behind the one that
// it is in: what that program does now, or "".
std::string HowItLooks(const Part& part) {
  if (part.at == nullptr || part.at->kind == EventKind::kEnd) return "";
  const auto& events = part.view->evidence->journal.events;
  const JournalEvent* phase = nullptr;
  for (const JournalEvent& event : events) {
    const bool same =
        event.communicator == part.at->communicator && event.sequence == part.at->sequence;
    if (event.kind == EventKind::kEnqueue && same) phase = &event;
    if (event.kind == EventKind::kPhase && phase != nullptr) phase = &event;
  }
  if (phase == nullptr || phase->kind != EventKind::kPhase) return "";
  const bool over = phase->phase == Phase::kFinalize;
  return fmt::format(
      "; its backward() returned before that was done, so rank {} looks {} ({}) and "
      "hangs where it first waits for its device",
      part.view->rank(), over ? "finished" : "as if it went on", verdict::Doing(phase->phase));
}

std::string Who(const Some& parts) {
  Views views;
  for (const Part* part : parts) views.push_back(part->view);
  return verdict::Who(views);
}

// Doing, for a headline.
std::string DoingBriefly(const Part& part) {
  if (part.at == nullptr) return part.over ? "has finished" : "is elsewhere";
  const bool done = part.at->kind == EventKind::kEnd;
  return (done ? "went through " : "is in ") + NameOfInvocation(*part.at);
}

Finding Explain(Cause cause, const Some& culprits, const Finding& general, Headline headline,
                std::string message, std::string remedy) {
  return {.cause = cause,
          .culprits = RanksOf(culprits),
          .proved = general.proved,
          .message = std::move(message),
          .remedy = std::move(remedy),
          .operation = general.operation,
          .headline = std::move(headline)};
}

// It is over, and did not come to the call. A root is done with a broadcast before others are.
bool EndedWithout(const Part& part, const JournalEvent& call) {
  if (part.at != nullptr || !part.over) return false;
  const Track* const track = part.view->TrackOf(call);
  return track == nullptr || track->next <= call.sequence;
}

std::optional<Finding> OneSidedEvaluation(const Parts& parts, bool mismatch,
                                          const Finding& general) {
  const Some evaluating = PartsWhere(parts, IsEvaluating);
  if (evaluating.empty()) return std::nullopt;
  const Some others = PartsWhere(parts, [&](const Part& part) {
    if (IsEvaluating(part)) return false;
    return EndedWithout(part, *evaluating.front()->at) ||
           (mismatch && part.at != nullptr && part.says.purpose != Purpose::kBufferBroadcast);
  });
  if (others.empty()) return std::nullopt;
  const std::vector<int> ranks = RanksOf(evaluating);
  return Explain(
      Cause::kOneSidedEvaluation, evaluating, general,
      Headline("{} {} through DistributedDataParallel", Who(evaluating),
               Verb(ranks, "evaluates", "evaluate"))
          .Add(" in " + NameOfInvocation(*evaluating.front()->at))
          .Add("; rank {} does not", others.front()->view->rank()),
      fmt::format("{} {} through DistributedDataParallel, which broadcasts the buffers before each "
                  "forward pass ({}), but rank {} does not: it {}",
                  FormatRanks(ranks), Verb(ranks, "evaluates", "evaluate"),
                  DescribeInvocation(*evaluating.front()->at), others.front()->view->rank(),
                  Doing(*others.front())),
      std::string(InfoOf(Cause::kOneSidedEvaluation).remedy));
}

// It ended the backward pass of that bucket's iteration without launching the bucket.
bool Withheld(const Part& part, const Annotation& bucket, bool mismatch) {
  if (part.at != nullptr && (!mismatch || part.says.purpose == Purpose::kBucket)) return false;
  const Phase phase = part.at != nullptr ? part.at->phase : part.view->phase;
  if (!part.knows || phase == Phase::kBackward) return false;
  if (part.bucket.iteration == bucket.iteration) {
    return part.told_phases && part.bucket.detail < bucket.detail;
  }
  // One backward pass an iteration, also under no_sync().
  return part.bucket.iteration < bucket.iteration &&
         part.backward_since >= bucket.iteration - part.bucket.iteration;
}

std::optional<Finding> OneSidedUnusedParameters(const Parts& parts, bool mismatch,
                                                const Finding& general) {
  const auto waiting = std::ranges::find_if(parts, [](const Part& part) {
    return part.at != nullptr && part.says.purpose == Purpose::kBucket;
  });
  if (waiting == parts.end()) return std::nullopt;
  const Some withheld =
      PartsWhere(parts, [&](const Part& part) { return Withheld(part, waiting->says, mismatch); });
  if (withheld.empty()) return std::nullopt;
  const std::vector<int> ranks = RanksOf(withheld);
  return Explain(
      Cause::kOneSidedUnusedParameters, withheld, general,
      Headline("{} ended the backward pass of iteration {} without bucket {}", Who(withheld),
               waiting->says.iteration, waiting->says.detail)
          .Add(WaitingClause({waiting->view->rank()}, ranks)),
      fmt::format("{} ended the backward pass of iteration {} without bucket {}: a parameter in it "
                  "got no gradient there; rank {} {}, rank {} {}",
                  FormatRanks(ranks), waiting->says.iteration, waiting->says.detail,
                  waiting->view->rank(), Doing(*waiting), ranks.front(), Doing(*withheld.front())),
      std::string(InfoOf(Cause::kOneSidedUnusedParameters).remedy));
}

// It is through with its inputs: over, leaving join, or in a barrier behind its loop.
bool IsThrough(const Part& part, bool mismatch) {
  if (part.at == nullptr) return part.over;
  if (!mismatch) return false;
  const bool barrier = part.says.purpose == Purpose::kBarrier && part.says.iteration < 0;
  return barrier || part.at->phase == Phase::kJoinExit;
}

std::optional<Finding> UnevenInputs(const Parts& parts, bool mismatch, const Finding& general) {
  const Part* training = nullptr;
  for (const Part& part : parts) {
    if (!IsOfIteration(part) || IsEvaluating(part)) continue;
    if (training == nullptr || part.says.iteration > training->says.iteration) training = &part;
  }
  if (training == nullptr) return std::nullopt;
  const Some through = PartsWhere(parts, [&](const Part& part) {
    return IsThrough(part, mismatch) && part.knows &&
           part.bucket.iteration < training->says.iteration;
  });
  if (through.empty()) return std::nullopt;
  const std::vector<int> ranks = RanksOf(through);
  const Part& first = *through.front();
  const bool joins = first.at != nullptr && first.at->phase == Phase::kJoinExit;
  return Explain(
      Cause::kUnevenInputs, through, general,
      Headline("{} had inputs for {} iterations", Who(through), first.bucket.iteration + 1)
          .Add("; rank {} {}", training->view->rank(), DoingBriefly(*training)),
      fmt::format("{} had inputs for {} iterations and {}, but rank {} has more and {}: nobody "
                  "will answer it{}",
                  FormatRanks(ranks), first.bucket.iteration + 1, Doing(first),
                  training->view->rank(), Doing(*training), HowItLooks(*training)),
      joins ? "Enter join() on all ranks, and leave its block only when the inputs are used up."
            : "Give every rank the same number of inputs (DistributedSampler does, drop_last "
              "cuts), or train inside join(): `with Join([model]):`.");
}

bool MayBeTraining(const FindingCause& cause) {
  return cause.info().blame == Blame::kCalls || cause == Cause::kRankExited ||
         cause == Cause::kRankFailed || cause == Cause::kRankBusy || cause == Cause::kUnknown;
}

// Why a training program came to what `general` says, if the journals show it; as certain as
// `general` is.
std::optional<Finding> ExplainTraining(const Situation& situation,
                                       const std::vector<Mismatch>& mismatches,
                                       const Finding& general) {
  if (!MayBeTraining(general.cause)) return std::nullopt;
  const Parts parts = PartsOf(situation, mismatches);
  if (parts.empty()) return std::nullopt;
  const bool mismatch = !mismatches.empty();
  if (auto found = OneSidedEvaluation(parts, mismatch, general)) return found;
  if (auto found = OneSidedUnusedParameters(parts, mismatch, general)) return found;
  return UnevenInputs(parts, mismatch, general);
}

Explanation training_mistake(Cause::kUnevenInputs, ExplainTraining);

}  // namespace
}  // namespace lockstep::verdict::finders
