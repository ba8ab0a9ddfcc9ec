// What is left when a watcher is killed: a process that takes its files away.
#pragma once

#include "watch/run/folder.h"

namespace lockstep::watch::run {

// Starts it. It ends with this process; if this one left its folder, the ranks are told that nobody
// reads any more, and the folder is removed.
void LeaveJanitor(const Folder& folder);

}  // namespace lockstep::watch::run
