// DDP's constructor: ranks agree on the number and shapes of parameters, then rank 0 broadcasts the
// model's state. Errors carry PyTorch's words, because users search for those.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <vector>

#include "core/ddp/engine.h"

namespace lockstep::ddp {
namespace {

// Sizes, then strides of a contiguous tensor.
void AppendSizesAndStrides(const TensorInfo& info, std::vector<std::int64_t>& to) {
  to.insert(to.end(), info.shape.begin(), info.shape.end());
  std::vector<std::int64_t> strides(info.shape.size(), 1);
  for (std::size_t i = info.shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(1, info.shape[i]);
  }
  to.insert(to.end(), strides.begin(), strides.end());
}

}  // namespace

Status Engine::Construct() {
  if (options_.buckets.rules != TorchRules::k1_9) {
    LOCKSTEP_RETURN_IF_ERROR(VerifyParameterCount());
  }
  LOCKSTEP_RETURN_IF_ERROR(VerifyShapes());
  LOCKSTEP_RETURN_IF_ERROR(BroadcastState(0, Purpose::kStateBroadcast));
  // Large, and not needed again before the end.
  return broadcast_.ReleaseMemory();
}

Status Engine::VerifyParameterCount() {
  const std::int64_t count = static_cast<std::int64_t>(module_.params().size());
  const Operation operation = {
      .collective = Collective::kAllGather, .type = DataType::kI64, .count = 1};
  LOCKSTEP_ASSIGN_OR_RETURN(const auto counts,
                            values_.Exchange(operation, std::vector{count}, Purpose::kVerifyCount));
  if (!launcher_.ports().communicator.capabilities().moves_data) return OkStatus();
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] == count) continue;
    return SystemFailed(
        "DDP expects same model across all ranks, but Rank {} has {} params, while rank {} has "
        "inconsistent {} params.",
        rank(), count, r, counts[r]);
  }
  return OkStatus();
}

Status Engine::VerifyShapes() {
  std::vector<std::int64_t> own;
  for (const Parameter& param : module_.params()) AppendSizesAndStrides(param.info, own);
  const Operation operation = {.collective = Collective::kBroadcast,
                               .type = DataType::kI64,
                               .count = static_cast<std::int64_t>(own.size())};
  LOCKSTEP_ASSIGN_OR_RETURN(const auto of_rank_0,
                            values_.Exchange(operation, own, Purpose::kVerifyShapes));
  std::size_t at = 0;
  for (std::size_t p = 0; p < module_.params().size(); ++p) {
    const TensorInfo& info = module_.params()[p].info;
    for (const std::size_t end = at + 2 * info.shape.size(); at < end; ++at) {
      if (of_rank_0[at] == own[at]) continue;
      return SystemFailed(
          "[{}]: params[{}] in this process with sizes [{}] appears not to match sizes of the same "
          "param in process 0.",
          rank(), p, fmt::join(info.shape, ", "));
    }
  }
  return OkStatus();
}

// Parameters, then buffers; since 2.x buffers only where they are broadcast at all.
Status Engine::BroadcastState(int root, Purpose purpose) {
  std::vector<TensorRef> tensors;
  for (const Parameter& param : module_.params()) {
    tensors.push_back({param.info.type, param.info.numel, param.data});
  }
  if (options_.broadcast_buffers || options_.buckets.rules != TorchRules::k2_6) {
    for (const ModuleBuffer& buffer : module_.buffers()) {
      tensors.push_back({buffer.info.type, buffer.info.numel, buffer.data});
    }
  }
  return broadcast_.Run(tensors, root, purpose);
}

}  // namespace lockstep::ddp
