#include "core/comm/sim/network.h"

#include <algorithm>
#include <bit>

namespace lockstep::comm::sim {

double CollectiveNs(const SimNetwork& network, const collective::Operation& operation,
                    int world_size) {
  const auto bytes = static_cast<double>(operation.count * collective::SizeOf(operation.type));
  const double message = network.alpha_ns + bytes * network.beta_ns_per_byte;
  const double ranks = world_size;
  const double rounds = std::bit_width(static_cast<unsigned>(world_size - 1));  // ceil(log2 W)
  switch (operation.collective) {
    case collective::Collective::kAllReduce:
      return std::min(
          2 * (ranks - 1) * (network.alpha_ns + bytes / ranks * network.beta_ns_per_byte),
          rounds * message);
    case collective::Collective::kAllGather:
    case collective::Collective::kReduceScatter:
      return (ranks - 1) * message;
    case collective::Collective::kBroadcast:
    case collective::Collective::kReduce:
      return rounds * message;
    case collective::Collective::kBarrier:
      return rounds * network.alpha_ns;
    case collective::Collective::kSend:
    case collective::Collective::kRecv:
      return message;
  }
  return 0;
}

std::int64_t DrawNs(const SimNetwork& network, double ns, Random& random) {
  return static_cast<std::int64_t>(ns * (1 + network.jitter * random.Uniform()));
}

}  // namespace lockstep::comm::sim
