// DDP under torch.distributed.algorithms.join.Join: a rank without inputs shadows the collectives
// of those that still train. What it reads from others is checked, since ranks may be out of step.

#include <cstdint>
#include <vector>

#include "core/ddp/engine.h"

namespace lockstep::ddp {

// What a rank that still trains tells those that joined, at the beginning of each forward.
Status Engine::NotifyJoin() {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto alive, LaunchFlag(1, Purpose::kJoinAlive));
  if (join_.throw_on_early_termination) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto handle, LaunchFlag(0, Purpose::kJoinThrow));
    LOCKSTEP_ASSIGN_OR_RETURN(const auto thrown, values_.Read<float>(handle));
    if (thrown.front() != 0) {
      return SystemFailed(
          "Detected at least one rank that exhausted inputs. Throwing across all ranks.");
    }
  }
  reducer_.SetDivisorSource(join_.divide_by_initial_world_size ? nullptr : alive);
  return OkStatus();
}

Result<int> Engine::FindCommonRank(bool candidate, Purpose purpose) {
  const Operation operation = {.collective = Collective::kAllReduce,
                               .type = DataType::kI64,
                               .reduction = collective::Reduction::kMax,
                               .count = 1};
  const std::int64_t own = candidate ? rank() : -1;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto common,
                            values_.Exchange(operation, std::vector{own}, purpose));
  if (common.front() == -1) {
    return SystemFailed(
        "BUG! Expected rank_cond to be true for at least one process. This indicates a bug in "
        "PyTorch, please report an issue.");
  }
  if (common.front() < 0 || common.front() >= size()) {  // the ranks are out of step
    return SystemFailed("the common rank {} is none of {} ranks", common.front(), size());
  }
  return static_cast<int>(common.front());
}

// Shadows one iteration of the ranks that still train. False: all ranks joined.
Result<bool> Engine::ShadowIteration() {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto alive, LaunchFlag(0, Purpose::kJoinAlive));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto others, values_.Read<float>(alive));
  if (others.front() == 0) return false;
  if (join_.throw_on_early_termination) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto handle, LaunchFlag(1, Purpose::kJoinThrow));
    LOCKSTEP_RETURN_IF_ERROR(values_.Read<float>(handle).status());
    return SystemFailed("Rank {} exhausted all inputs.", rank());
  }
  LOCKSTEP_RETURN_IF_ERROR(reducer_.RebuildBuckets());
  if (WillSyncBuffers()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int root, FindCommonRank(false, Purpose::kJoinCommonRank));
    LOCKSTEP_RETURN_IF_ERROR(SyncBuffers(root));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto sync, LaunchFlag(0, Purpose::kJoinShouldSync));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto syncing, values_.Read<float>(sync));
  require_forward_param_sync_ = syncing.front() != 0;
  if (!require_forward_param_sync_) return true;
  LOCKSTEP_RETURN_IF_ERROR(reducer_.ShadowBuckets());
  if (options_.buckets.find_unused_parameters) LOCKSTEP_RETURN_IF_ERROR(reducer_.ShadowBitmap());
  reducer_.PushAllRebuiltParams();
  return true;
}

Status Engine::ExitJoin() {
  // More shadows than any training has iterations: ranks that are out of step can read anything.
  constexpr std::int64_t kMostShadows = std::int64_t{1} << 40;
  bool is_last_joiner = true;
  for (std::int64_t shadow = 0; shadow < kMostShadows; ++shadow) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool others_train, ShadowIteration());
    if (!others_train) break;
    is_last_joiner = false;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const int root,
                            FindCommonRank(is_last_joiner, Purpose::kJoinFinalRank));
  return BroadcastState(root, Purpose::kJoinFinalSync);
}

}  // namespace lockstep::ddp
