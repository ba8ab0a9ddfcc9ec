// Why a training program came to a standstill, from what its ranks said they were doing: the
// mistakes of DistributedDataParallel's users. Source: pytorch's forums and issues 33148, 38174
// (uneven inputs), 54059, 20611 (evaluation on one rank), 72434 (unused parameters).
#include <fmt/core.h>

#include <algorithm>

#include "core/journal/purpose.h"
#include "core/verdict/finders/explanation.h"
#include "core/verdict/finders/training_part.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

using Some = std::vector<const Part*>;

Some PartsWhere(const Parts& parts, auto holds) {
  Some some;
  for (const Part& part : parts) {
    if (holds(part)) some.push_back(&part);
  }
  return some;
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

// What belongs to the forward pass of no training iteration still to come.
bool IsEvaluating(const Part& part) {
  if (part.at == nullptr || !IsOfForward(part.says.purpose)) return false;
  if (part.phase == Phase::kEvaluate) return true;
  return part.says.purpose == Purpose::kBufferBroadcast && part.phase != Phase::kJoinExit &&
         part.trained >= 0 && part.says.iteration <= part.trained;
}

// It evaluated, and what it calls next comes too late for the others.
bool HasEvaluated(const Part& part) {
  const bool next = part.says.iteration == part.trained + 1 || part.phase == Phase::kJoinExit;
  return part.passes > 0 && IsOfForward(part.says.purpose) && next;
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

// "rank 0 evaluates", "ranks 1 and 2 have evaluated".
std::string_view Evaluates(const Some& parts, bool now) {
  const std::vector<int> ranks = RanksOf(parts);
  return now ? Verb(ranks, "evaluates", "evaluate")
             : Verb(ranks, "has evaluated", "have evaluated");
}

// What it calls instead of a pass that it does not evaluate.
bool LacksPass(const Part& part, const Part& evaluating) {
  if (part.at == nullptr || part.says.purpose == evaluating.says.purpose) return false;
  if (part.phase == Phase::kEvaluate) return false;
  const bool now = evaluating.phase == Phase::kEvaluate;  // else it has, and others have not
  if (part.passes > 0 && (!now || part.passes >= evaluating.passes)) return false;
  // Gradients that the other one never sent, before it evaluated, are another matter.
  return !now || evaluating.trained < 0 || part.says.purpose != Purpose::kBucket ||
         part.says.iteration <= evaluating.trained ||
         part.says.iteration > evaluating.says.iteration;
}

Headline HeadlineOf(const Some& evaluating, const Some& others, bool now) {
  const std::vector<int> ranks = RanksOf(others);
  const bool shadow = std::ranges::all_of(others, [](const Part* part) {
    return part->at != nullptr && part->says.purpose == Purpose::kJoinShadowBucket;
  });
  Headline headline("{} {} through DistributedDataParallel", Who(evaluating),
                    Evaluates(evaluating, now));
  if (now) headline.Add(" in " + NameOfInvocation(*evaluating.front()->at));
  if (shadow) {
    headline.Add("; {} {} training", FormatRanks(ranks), Verb(ranks, "shadows", "shadow"));
  } else {
    headline.Add("; rank {} {} not", ranks.front(), now ? "does" : "has");
  }
  return headline;
}

std::optional<Finding> OneSidedEvaluation(const Parts& parts, bool mismatch,
                                          const Finding& general) {
  Some evaluating = PartsWhere(parts, IsEvaluating);
  const bool now = !evaluating.empty();
  if (!now && mismatch) evaluating = PartsWhere(parts, HasEvaluated);
  if (evaluating.empty()) return std::nullopt;
  const Part& one = *evaluating.front();
  const Some others = PartsWhere(parts, [&](const Part& part) {
    if (IsEvaluating(part)) return false;
    return EndedWithout(part, *one.at) || (mismatch && LacksPass(part, one));
  });
  if (others.empty()) return std::nullopt;
  const Part& other = *others.front();
  const bool join = IsJoinFlag(one.says.purpose);
  return Explain(
      Cause::kOneSidedEvaluation, evaluating, general, HeadlineOf(evaluating, others, now),
      fmt::format("{} {} through DistributedDataParallel, which {} before each forward pass ({}), "
                  "but rank {} {}: it {}",
                  FormatRanks(RanksOf(evaluating)), Evaluates(evaluating, now),
                  join ? "tells those that joined" : "broadcasts the buffers",
                  DescribeInvocation(*one.at), other.view->rank(), now ? "does not" : "has not",
                  Doing(other)),
      join ? "Inside join() evaluate with model.module(x): a rank that joined shadows training."
           : std::string(InfoOf(Cause::kOneSidedEvaluation).remedy));
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
      fmt::format(
          "{} ended the backward pass of iteration {} without bucket {}, most likely because "
          "a parameter in it got no gradient there; rank {} {}, rank {} {}",
          FormatRanks(ranks), waiting->says.iteration, waiting->says.detail, waiting->view->rank(),
          Doing(*waiting), ranks.front(), Doing(*withheld.front())),
      std::string(InfoOf(Cause::kOneSidedUnusedParameters).remedy));
}

// It is through with its inputs: over, leaving join, or in a barrier behind its loop.
bool IsThrough(const Part& part, bool mismatch) {
  if (part.at == nullptr) return part.over;
  if (!mismatch) return false;
  const bool barrier = part.says.purpose == Purpose::kBarrier && part.says.iteration < 0;
  return barrier || part.phase == Phase::kJoinExit;
}

// It trains under join(): ranks without inputs answer it.
bool TellsThoseThatJoined(const Part& part) {
  return std::ranges::any_of(part.view->evidence->journal.events, [&](const JournalEvent& event) {
    const Annotation says = journal::UnpackAnnotation(event.value);
    return says.purpose == Purpose::kJoinAlive && says.iteration == part.says.iteration;
  });
}

// "rank 1 had inputs for 3 iterations", "ranks 1 and 2 had inputs for 3 to 4 iterations".
std::string HadInputs(const std::string& who, const Some& parts) {
  const auto [least, most] =
      std::ranges::minmax(parts, {}, [](const Part* part) { return InputsOf(*part); });
  const int from = InputsOf(*least), to = InputsOf(*most);
  return fmt::format("{} had inputs for {}{} iterations", who, from,
                     from == to ? "" : fmt::format(" to {}", to));
}

std::optional<Finding> UnevenInputs(const Parts& parts, bool mismatch, const Finding& general) {
  const Part* training = nullptr;
  for (const Part& part : parts) {
    if (!IsOfIteration(part) || IsEvaluating(part)) continue;
    if (training == nullptr || part.says.iteration > training->says.iteration) training = &part;
  }
  if (training == nullptr) return std::nullopt;
  const bool join = TellsThoseThatJoined(*training);
  const Some through = PartsWhere(parts, [&](const Part& part) {
    const bool shadows = join && part.at != nullptr && part.phase == Phase::kJoinExit;
    return IsThrough(part, mismatch) && !shadows && part.knows &&
           InputsOf(part) <= training->says.iteration;
  });
  if (through.empty()) return std::nullopt;
  const std::vector<int> ranks = RanksOf(through);
  const Part& first = *through.front();
  const bool joins = first.at != nullptr && first.at->phase == Phase::kJoinExit;
  return Explain(
      Cause::kUnevenInputs, through, general,
      Headline(HadInputs(Who(through), through))
          .Add("; rank {} {}", training->view->rank(), DoingBriefly(*training)),
      fmt::format("{} and {}, but rank {} has more and {}: nobody will answer it{}",
                  HadInputs(FormatRanks(ranks), through), Doing(first), training->view->rank(),
                  Doing(*training), HowItLooks(*training)),
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
