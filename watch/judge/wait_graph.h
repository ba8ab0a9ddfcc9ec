// Who waits for whom, and who can therefore never go on.
#pragma once

#include <cstddef>
#include <vector>

#include "watch/judge/history.h"

namespace lockstep::watch::judge {

inline std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }

// One need of a blocked rank: any of these ranks can meet it.
struct Need {
  std::vector<int> any_of;
  bool soft = false;             // a library that buffers may meet it alone
  const Event* about = nullptr;  // what the rank waits with; valid until the history grows
  bool apart = false;            // members gave different things: a library may pair them
};

struct Wait {
  int rank = 0;
  bool all = true;  // all needs, or one of them
  std::vector<Need> needs;
  bool pending = false;  // it waits for something under way, too

  // The one to tell of: nothing that may be buffered, if there is another.
  const Need& main() const;
};

struct StuckRanks {
  std::vector<Wait> waits;  // of the ranks that can never go on; none: nobody is stuck
  bool soft = false;        // true only if nothing buffers what is sent
  bool apart = false;       // true only if a library pairs nothing that does not belong together
};

// The greatest set of ranks in which nobody's needs can be met from outside of it. Linear in
// members of needs.
StuckRanks FindStuck(const History& history);

// Where it begins: ranks that wait for each other in a circle, each for the next; or one that waits
// for a rank that is over. Of `stuck`, which is not empty.
std::vector<const Wait*> HeartOf(const StuckRanks& stuck);

}  // namespace lockstep::watch::judge
