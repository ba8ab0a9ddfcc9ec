// What the journal of each rank says of its part in a training program that came to a standstill.
#pragma once

#include <vector>

#include "core/journal/purpose.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

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
  // When it called `at`, which may have begun or ended later: in which phase, after which iteration
  // of its own, and how many forward passes of evaluation lie between the two.
  Phase phase = Phase::kStart;
  int trained = -1;
  int passes = 0;
};
using Parts = std::vector<Part>;

// Empty when nobody speaks of training. Of the first mismatch, or of what each rank is in.
Parts PartsOf(const Situation& situation, const std::vector<Mismatch>& mismatches);

bool IsJoinFlag(Purpose purpose);
// DistributedDataParallel calls it before the forward pass of the module.
bool IsOfForward(Purpose purpose);
// Iterations that it had inputs for: gradients travel in those outside of no_sync() alone.
int InputsOf(const Part& part);

}  // namespace lockstep::verdict::finders
