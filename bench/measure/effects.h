// What options do: cases that differ in one setting, compared round by round. Pure.
#pragma once

#include "results/store/run.h"

namespace lockstep::bench::measure {

// Fills run.effects and run.recommendation from the settings and samples of its cases. A case's
// baseline in an option is the first case that differs from it in that option only, so plans list
// defaults first. Rounds that visited both give one ratio each, in which drift of the machine
// cancels; the interval is that of their median, and when several values of an option are compared
// with one baseline, all their intervals hold together with 95 % (Bonferroni). The first round of a
// case is left out if it `calibrates` and there are others. Repetitions of a case count together:
// effects name its first. A case that failed is not compared. Recommended is only what is faster
// for sure (its interval lies above 1), of each option the best; else the recommendation says that
// nothing is gained, or what is best so far and how well that is known.
// A round counts by the median of its samples, or by their mean where samples are not alike.
void AddEffects(bool calibrates, bool by_mean, results::store::Run& run);

}  // namespace lockstep::bench::measure
