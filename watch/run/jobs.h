// The jobs of one watcher: launches, and what ranks spawn.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "watch/run/job.h"

namespace lockstep::watch::run {

// By the name of the launch, and its number among those of one name.
using Jobs = std::map<std::string, std::unique_ptr<Job>>;

// Where ranks spawn others, one launcher ends all of them because of one: so that a rank which died
// is blamed only where none of another job was gone before it. Before a look at their processes.
void NoteEndsElsewhere(const Jobs& jobs);
// … after it: who is not gone now was alive when the others were seen gone.
void LookAgainWhereOneEnded(const Jobs& jobs);

}  // namespace lockstep::watch::run
