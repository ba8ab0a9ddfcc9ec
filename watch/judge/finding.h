// What a judge tells.
#pragma once

#include <string>
#include <vector>

#include "core/verdict/headline.h"

namespace lockstep::watch::judge {

enum class Cause {
  kDeadlock,
  kUnsafeOrder,
  kTagMismatch,
  kCommunicatorMismatch,
  kCallMismatch,
  kMissingCall,
  kRootMismatch,
  kOperatorMismatch,
  kDatatypeMismatch,
  kTruncation,
  kLostMessage,
  kLostRank,
  kStoppedRank,
  kAborted,
  kInvalidCommunicator,
  kInvalidDatatype,
  kInvalidOperator,
  kInvalidRoot,
  kInvalidRank,
  kInvalidTag,
  kInvalidCount,
  kInvalidArgument,
  kUnfinishedRequest,
  kNeverStarted,
  kStartedTwice,
  kRequestLeak,
  kCommunicatorLeak,
  kDatatypeLeak,
  kOperatorLeak,
  kGroupLeak,
  kWindowLeak,
  kFileLeak,
  kMessageRace,
};

const char* NameOf(Cause cause);
// `in_group`: of a process group of PyTorch.
const char* RemedyOf(Cause cause, bool in_group = false);

struct Finding {
  Cause cause = Cause::kDeadlock;
  std::vector<int> culprits;  // ranks of the world
  bool proved = true;
  bool hangs = false;  // the program goes no further
  bool in_group = false;
  std::string text;
  verdict::Headline headline = verdict::Headline::Of(text);  // what a person reads first
};

}  // namespace lockstep::watch::judge
