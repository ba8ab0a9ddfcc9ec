// From what is known of every rank to a judgement: pure functions of the history.
#ifndef LOCKSTEP_CORE_VERDICT_JUDGE_H_
#define LOCKSTEP_CORE_VERDICT_JUDGE_H_

#include <string>
#include <vector>

#include "core/journal/journal.h"
#include "core/verdict/outcome.h"

namespace lockstep {

// How a worker process stands, as its agent sees it.
enum class ProcessState : std::uint8_t { kRunning, kStopped, kExited, kSignalled, kLost };

// Everything known of one rank at the moment of an interruption, before anything was ended by us.
struct RankEvidence {
  int rank = 0;
  ProcessState state = ProcessState::kRunning;  // kLost: its agent does not answer
  int exit_code = 0;                            // kExited
  int signal = 0;                               // kSignalled, kStopped
  Journal journal;                              // the newest events
  double seconds_silent = 0;                    // from its newest event to the evidence
  bool idle = false;                            // it waits for an order: not obliged to progress
  std::string error;                            // what the worker itself reported, if it did
  std::string system;                           // "sleeping in nanosleep", stack …; may be empty
  bool asleep = false;  // in a system call other than those that wait for peers, without CPU time
};

// `deadline_seconds`: silence beyond it makes a suspected hang. Findings name the rank that
// exited, died or is stopped (proved); ranks in the same position of one communicator with
// different operations (proved); the rank that has not entered what the others wait in; else a
// stall that all entered (suspected), where a rank asleep outside the library is named as culprit.
// A rank that waits for a culprit is kHung; one that reported an error because of it is kFailed.
Judgement Judge(const std::vector<RankEvidence>& evidence, double deadline_seconds);

// "all_reduce 50 (sequence 101 of communicator 0) f32 x 256 sum": for messages and tables.
std::string DescribeInvocation(const JournalEvent& event);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_VERDICT_JUDGE_H_
