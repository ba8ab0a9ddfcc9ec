#include "core/comm/sim/fate.h"

#include <cstdint>

#include "core/collective/reference.h"
#include "fmt/format.h"

namespace lockstep::comm::sim {

SimFate Truncated(SimDelivery delivery) {
  return {.kind = SimFate::Kind::kError,
          .delivery = std::move(delivery),
          .message = "MPI_ERR_TRUNCATE: message truncated"};
}

SimFate Overrun(std::size_t sent, std::size_t room) {
  return {.kind = SimFate::Kind::kCrash,
          .message = fmt::format("gloo::EnforceNotMet: op.preamble.length <= op.nbytes. {} vs {}",
                                 sent, room)};
}

void CombineInto(const SimCall& call, std::byte* total, const std::byte* input, std::size_t bytes) {
  Operation operation = call.run;
  operation.collective = Collective::kAllReduce;
  operation.count = static_cast<std::int64_t>(bytes) / collective::SizeOf(operation.type);
  const std::vector<std::byte> before(total, total + bytes);
  collective::ReferenceResult(operation, 2, {before.data(), input}, 0, total);
}

}  // namespace lockstep::comm::sim
