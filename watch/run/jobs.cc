#include "watch/run/jobs.h"

#include <algorithm>

namespace lockstep::watch::run {
namespace {

bool Spawn(const Jobs& jobs) {
  return jobs.size() > 1 &&
         std::ranges::any_of(jobs, [](const auto& each) { return each.second->Spawns(); });
}

}  // namespace

void NoteEndsElsewhere(const Jobs& jobs) {
  if (!Spawn(jobs)) return;
  for (const auto& [name, job] : jobs) {
    int looks = 0;
    for (const auto& [other, beside] : jobs) {
      if (beside != job) looks = std::max(looks, beside->LooksSinceEnd());
    }
    job->GoneElsewhere(looks);
  }
}

void LookAgainWhereOneEnded(const Jobs& jobs) {
  const bool ended =
      std::ranges::any_of(jobs, [](const auto& each) { return each.second->HasFreshEnd(); });
  if (!ended || !Spawn(jobs)) return;
  for (const auto& [name, job] : jobs) job->LookAgain();
}

}  // namespace lockstep::watch::run
