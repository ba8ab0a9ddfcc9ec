// What an engine is told, and what it tells of an iteration.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/buckets.h"
#include "core/ddp/launcher.h"

namespace lockstep::ddp {

enum class CommHook : std::uint8_t { kNone, kAllReduce, kFp16, kBf16, kPowerSgd };
// "none", "all_reduce", "fp16", "bf16", "powersgd". Errors name `option`, the text and these.
Result<CommHook> ParseCommHook(std::string_view option, std::string_view text);
std::string_view NameOf(CommHook hook);

// powerSGD_hook's state, with PyTorch's defaults.
struct PowerSgdOptions {
  int rank = 1;  // matrix_approximation_rank
  std::int64_t start_iteration = 1000;
  double min_compression_rate = 2;
  bool error_feedback = true;
  bool warm_start = true;
  std::uint64_t seed = 0;
};

struct JoinOptions {
  bool divide_by_initial_world_size = true;
  bool throw_on_early_termination = false;
};

enum class BarrierKind : std::uint8_t {
  kNative,     // the communicator's barrier
  kAllReduce,  // an all-reduce of one f32, as PyTorch does on NCCL
};

struct EngineOptions {
  BucketOptions buckets;
  bool broadcast_buffers = true;
  CommHook hook = CommHook::kNone;
  PowerSgdOptions power_sgd = {};
  double deadline_seconds = 24 * 3600;  // of every wait on the host
};

// Times of an iteration in ticks of the device; Ticks 0: it had no such part.
struct StepTimes {
  Ticks forward_begin = 0;  // before DDP's own work
  Ticks buffers_begin = 0;  // the blocking part of the buffer broadcast
  Ticks buffers_end = 0;
  Ticks forward_end = 0;
  Ticks backward_begin = 0;
  Ticks backward_compute_end = 0;            // the last gradient is computed and in its bucket
  Ticks backward_end = 0;                    // gradients are averaged and copied back
  std::vector<CollectiveTimes> collectives;  // in launch order
};

}  // namespace lockstep::ddp
