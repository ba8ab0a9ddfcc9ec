// Causes that follow from what the program is, beside what the journals show.
#pragma once

#include <vector>

#include "core/verdict/judge.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::cases {

// Gives findings their specific cause, where there is one; the general one becomes its evidence:
//   out_of_memory  a rank reported that it ran out of memory
//   stream_race    wrong data of `stream_race`, where a rank's stamps show that the accesses
//                  overlapped
//   no_effect      wrong data of a rank that called a communicator which it is no member of
//   uneven_inputs  of `sharded_loading`: a rank ended in order and others wait for it
void NameCauses(const scenario::Scenario& scenario,
                const std::vector<verdict::RankEvidence>& evidence, verdict::Judgement& judgement);

}  // namespace lockstep::stress::cases
