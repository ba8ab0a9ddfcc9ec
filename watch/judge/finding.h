// What a judge tells. The first line says who, where and what.
#ifndef LOCKSTEP_WATCH_JUDGE_FINDING_H_
#define LOCKSTEP_WATCH_JUDGE_FINDING_H_

#include <string>
#include <vector>

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
const char* RemedyOf(Cause cause);

struct Finding {
  Cause cause = Cause::kDeadlock;
  std::vector<int> culprits;  // ranks of the world
  bool proved = true;
  bool hangs = false;  // the program goes no further
  std::string text;
};

}  // namespace lockstep::watch::judge

#endif  // LOCKSTEP_WATCH_JUDGE_FINDING_H_
