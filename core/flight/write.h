// Histories as dumps of PyTorch's Flight Recorder, which its analyzer reads (torch.distributed.
// flight_recorder, torchfrtrace).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/verdict/judge.h"

namespace lockstep::flight {

using collective::Collective;
using journal::JournalEvent;
using verdict::RankEvidence;

// How ticks become times of day.
struct FlightClock {
  double ns_per_tick = 1;
  std::uint64_t origin_ticks = 0;
  std::int64_t origin_unix_ns = 0;
};

// By rank: a pickle of protocol 2, format 2.10. Names begin with "nccl:" whatever the backend,
// because PyTorch's analyzer reads no other; a barrier is all_reduce_barrier; what a collective is
// for is its frame. Communicators are process groups: 0 is that of all ranks, another one that of
// the ranks that used it, and one that was made anew is another group. Reductions and roots have no
// place in the format.
std::vector<std::pair<int, std::string>> FlightDumpsOf(const std::vector<RankEvidence>& evidence,
                                                       const FlightClock& clock,
                                                       double timeout_seconds);

}  // namespace lockstep::flight
