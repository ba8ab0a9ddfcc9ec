// Who is to blame for a hung PyTorch job, from its Flight Recorder's dumps.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/flight/job.h"
#include "core/verdict/judge.h"
#include "core/verdict/trace.h"

namespace lockstep::flight {

struct FlightDiagnosis {
  verdict::Judgement judgement;  // of the ranks with dumps, and of those that miss
  verdict::Trace trace;          // PyTorch's names and places; no rows when nothing is in question
  std::vector<std::string> notes;
  std::string backend;  // whose rules hold: "nccl", "gloo"
  double seconds = 0;   // nothing moved for so long when the dumps were taken
};

// What Judge finds in the histories, in the words of PyTorch's users: calls with their sizes and
// the line of the program. Added to it: calls that differ in what a journal does not hold, calls
// between two ranks, ranks without a dump. Calls are no hang before nothing has moved for
// `deadline_seconds`, or one has outlasted its own time-out. Verdict: kPass when every call of
// every rank is done; kUnknown when no dump holds a call.
Result<FlightDiagnosis> DiagnoseFlight(const FlightJob& job, double deadline_seconds,
                                       const verdict::TraceLimits& limits = {});

}  // namespace lockstep::flight
