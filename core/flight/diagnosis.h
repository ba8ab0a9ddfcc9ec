// Who is to blame for a hung PyTorch job, from its Flight Recorder's dumps.
#pragma once

#include <optional>
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
  std::string backend;          // whose rules hold: "nccl", "gloo"
  double seconds = 0;           // nothing moved for so long when the dumps were taken
  double deadline_seconds = 0;  // silence that was taken for a hang
  bool under_way = false;       // some call
};

// What Judge finds in the histories, in the words of PyTorch's users: calls with their sizes and
// the line of the program. Added to it: calls that differ in what a journal does not hold, calls
// between two ranks, ranks without a dump. Verdict: kPass when every call of every rank is done
// and all ranks of a group made the same number; kUnknown when no dump holds a call.
// `deadline_seconds`: silence that is taken for a hang. Without it a call hangs that is under way
// for its own time-out, at which PyTorch ends the job, or for kFlightDeadlineSeconds
// (history.h).
Result<FlightDiagnosis> DiagnoseFlight(const FlightJob& job,
                                       std::optional<double> deadline_seconds = std::nullopt,
                                       const verdict::TraceLimits& limits = {});

}  // namespace lockstep::flight
