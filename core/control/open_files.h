// The limit on open files (RLIMIT_NOFILE): an agent takes all that it may have, a worker gets what
// the launcher gave.
#pragma once

#include <sys/resource.h>

#include "core/base/status.h"

namespace lockstep::control {

// Raises the soft limit of this process to the hard one. Idempotent.
void RaiseOpenFiles();

// The soft limit that this process was started with.
rlim_t InheritedOpenFiles();

// Sets the soft limit of this process. A worker does it for itself: were its agent to lower its own
// limit while it starts one, the agent's other threads could open nothing meanwhile.
void LimitOpenFiles(rlim_t soft);

// Whether the agent of `rank` can have `peers` connections beside what it opens for itself.
Status CheckOpenFiles(int rank, int peers);

// For what has just failed with EMFILE or ENFILE: the same error, with one more than there is.
bool IsOutOfFiles(int error);
Status OutOfFiles(int peers);

}  // namespace lockstep::control
