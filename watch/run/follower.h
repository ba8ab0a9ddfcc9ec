// The watcher of a rank other than 0: tells rank 0's what its processes write.
#pragma once

#include "core/base/status.h"
#include "core/control/signals.h"
#include "watch/run/command.h"
#include "watch/run/flight.h"
#include "watch/run/folder.h"
#include "watch/run/launch.h"

namespace lockstep::watch::run {

// `command` was started. Until it has ended; its exit code, or 1 where rank 0's watcher ended it.
int Follow(const Launch& launch, Folder& folder, Command& command, control::Signals& signals,
           Flight& flight);

}  // namespace lockstep::watch::run
