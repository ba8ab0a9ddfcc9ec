// Jobs as a table, and as a JSON document.
#pragma once

#include <string>
#include <vector>

#include "watch/status/jobs.h"

namespace lockstep::watch::status {

// A heading a job, a row a rank; one line where there is no job.
std::string FormatTable(const std::vector<JobNow>& jobs);
// {"jobs": [{"job", "command", "watcher", "size", "ranks": [{"rank", "pid", "state", …,
// "calls"}]}]}
std::string FormatJson(const std::vector<JobNow>& jobs);

}  // namespace lockstep::watch::status
