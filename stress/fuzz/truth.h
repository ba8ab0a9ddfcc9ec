// What must be said of a trial, from the way it was made: never from what the judge says.
//
//   fault                     truth
//   none, slow, pause         all finish with right data; no finding, at no moment. So it is with a
//                             fault that the program never reaches, and with a "wrong" call that is
//                             the right one.
//   exit, crash, kill, stop,  from the moment on: proved, the cause of that name, that rank alone.
//   throw                     Whom it keeps waiting is an innocent; whose library reports the lost
//                             connection, too.
//   hang                      nothing before the deadline: the journals show a rank that computes.
//                             Then rank_busy (init_failure before it connects): suspected, that
//                             rank alone. Where calls are non-blocking nobody can tell computing
//                             from waiting for them: `unknown` is right, too.
//   skip, extra, wrong …,     by what the journals can show (truth_divergence.cc): ranks that
//   called swap                      different operations in one position, a rank that left before
//   the
//                             others did, or a ring over communicators. A library that lets it
//                             pass leaves wrong data or none, and nobody may be said to hang.
//
// And for all of them: how every rank ended is what the simulation knows. A rank said to hang
// before the end completes nothing afterwards (when a rank is gone inside a collective it may have
// done its part: then all must have been quiet for 10 ms); a finding is proved when it comes before
// the deadline.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/verdict/judge.h"
#include "stress/fuzz/simulate.h"
#include "stress/fuzz/trial.h"

namespace lockstep::stress::fuzz {

using Judging = std::function<verdict::Judgement(const std::vector<verdict::RankEvidence>&,
                                                 const verdict::Setting&)>;

struct Assessment {
  std::string wrong;     // "": the verdict is right; else a class ("innocent culprit: …") and why
  bool unknown = false;  // an honest one: ranks hang or failed, and the verdict names no cause
  bool trouble = false;  // not all ranks finished
  bool silent = false;   // all finished, although one called something else
  bool corrupt = false;  // … and with results that are not those of the program
};

// Of the verdict at the end, and at `moments` moments on the way.
Assessment AssessTrial(const FuzzTrial& trial, const FuzzRun& run, const Judging& judge,
                       int moments = 2);

// Of truth_divergence.cc: "" or why `first` is not what the journals show of the calls that differ.
std::string WrongAboutCalls(const FuzzTrial& trial, const FuzzRun& run, std::int64_t ns,
                            const verdict::Finding& first);
// The faulty rank makes more or fewer calls on a communicator than it was meant to, and no other
// mistake: where all ranks end in order all the same, their numbers differ.
bool MadeAnotherNumberOfCalls(const FuzzTrial& trial, const FuzzRun& run);

}  // namespace lockstep::stress::fuzz
