// What was judged, into a run and out of it again.
#pragma once

#include <cstdint>
#include <vector>

#include "core/verdict/judge.h"
#include "results/store/run.h"

namespace lockstep::results::store {

// A judgement of a lifetime of workers: whose it is, and by which deadline.
struct JudgedLifetime {
  std::int32_t case_index = -1;  // -1: of the launch
  std::int32_t lifetime = 0;
  double deadline_seconds = 0;
};

// Adds the evidence to a run whose history holds the lifetime already. Nothing where that history
// lacks an event that was judged: half of the evidence would lead to another judgement.
void AddEvidence(const JudgedLifetime& judged, const std::vector<verdict::RankEvidence>& evidence,
                 Run& run);

// What AddEvidence was given, as far as Judge looks at it; empty: the run holds none of it.
std::vector<verdict::RankEvidence> EvidenceOf(const Run& run, int lifetime);

}  // namespace lockstep::results::store
