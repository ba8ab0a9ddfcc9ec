// The jobs of one watcher: launches, and what ranks spawn.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "watch/run/job.h"

namespace lockstep::watch::run {

// By the name of the launch, and its number among those of one name.
using Jobs = std::map<std::string, std::unique_ptr<Job>>;

inline bool RanksSpawn(const Jobs& jobs) {
  return jobs.size() > 1 &&
         std::ranges::any_of(jobs, [](const auto& each) { return each.second->Spawns(); });
}

// Where ranks spawn others, one launcher ends all of them because of one: so that a rank which died
// is blamed only where none of another job was gone before it. Before a look at their processes.
inline void NoteEndsElsewhere(const Jobs& jobs) {
  if (!RanksSpawn(jobs)) return;
  for (const auto& [name, job] : jobs) {
    int looks = 0;
    for (const auto& [other, beside] : jobs) {
      if (beside != job) looks = std::max(looks, beside->LooksSinceEnd());
    }
    job->GoneElsewhere(looks);
  }
}

// … after it: who is not gone now was alive when the others were seen gone.
inline void LookAgainWhereOneEnded(const Jobs& jobs) {
  const bool ended =
      std::ranges::any_of(jobs, [](const auto& each) { return each.second->HasFreshEnd(); });
  if (!ended || !RanksSpawn(jobs)) return;
  for (const auto& [name, job] : jobs) job->LookAgain();
}

}  // namespace lockstep::watch::run
