// From a stored run back to what was known of every rank.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/verdict/judge.h"
#include "results/store/run.h"

namespace lockstep::results::store {

// The histories of one lifetime of the workers.
struct Lifetime {
  int number = 0;
  std::vector<verdict::RankEvidence> evidence;  // ascending ranks
};

// What the journals hold decides (deaths and exits are in them); what only the agents knew (a rank
// is stopped, silent for so long, in which system call) comes from the stored outcomes, which are
// those of the launch or of the case that the lifetime ended in. kInvalidInput without a history.
Result<std::vector<Lifetime>> LifetimesOf(const Run& run, const std::string& path);

// The run's judgement of one of its lifetimes: of a stress run that of its case; of others that of
// the launch if there is only one, else of the case in which it was interrupted; nullptr: it was
// not.
const verdict::Judgement* StoredJudgement(const Run& run, const Lifetime& lifetime,
                                          std::size_t lifetimes);

// The backend and the deadline of the run. The worker's collectives all went to one communicator.
verdict::Setting SettingOf(const Run& run);

}  // namespace lockstep::results::store
