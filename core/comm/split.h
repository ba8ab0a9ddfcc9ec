// Splitting a communicator whose library has no split: the ranks tell each other color and key
// through the meeting, and each computes its group.
#pragma once

#include <string>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"

namespace lockstep::comm {

// This rank's place in its new group.
struct SplitGroup {
  int rank = -1;  // -1: in none
  int size = 0;
  std::string prefix;  // of the meeting's keys, unique to the group
};

// Collective over the `size` ranks that share `prefix`, which must be new for every split.
// Ordered by key, then rank; a negative color is in no group.
Result<SplitGroup> AgreeOnGroup(Meeting& meeting, const std::string& prefix, int rank, int size,
                                int color, int key, Deadline deadline);

}  // namespace lockstep::comm
