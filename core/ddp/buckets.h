// How PyTorch's DistributedDataParallel (DDP) groups gradients into buckets: one all-reduce each.
// Pure functions, exact to PyTorch 1.9, 1.13 and 2.6. Source of the rules: pytorch
// torch/csrc/distributed/c10d/reducer.cpp (compute_bucket_assignment_by_size, rebuild_buckets) and
// torch/nn/parallel/distributed.py (_ddp_init_helper).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/collective/data_type.h"

namespace lockstep::ddp {

using collective::DataType;

// The gradient of one parameter. The sum of all bytes of a model must stay below 2^63.
struct Gradient {
  std::int64_t numel = 0;  // elements, >= 0
  DataType type = DataType::kF32;
  int device = 0;
  bool sparse = false;  // as of nn.Embedding(sparse=True): reduced in a bucket of its own
};

// Gradients that travel together. They lie in the bucket in the order of `params`, which are
// indices in registration order.
struct Bucket {
  DataType type = DataType::kF32;
  int device = 0;
  bool sparse = false;
  std::int64_t elements = 0;
  std::vector<int> params = {};

  std::int64_t bytes() const { return elements * collective::SizeOf(type); }
  bool operator==(const Bucket&) const = default;
};
// Buckets in the order in which they are launched.
using BucketLayout = std::vector<Bucket>;

// compute_bucket_assignment_by_size: gradients are taken in `order` (indices into `gradients`;
// empty: 0, 1, 2 …) and gathered per (type, device). A bucket closes when its bytes, with the
// gradient just added, reach its limit, so a bucket is never split and can exceed its limit. The
// n-th bucket of a (type, device) has limits[n], later ones the last limit. A sparse gradient is a
// bucket of its own at once. What is left open at the end follows in reverse order of first
// appearance of its (type, device): that is how libstdc++'s unordered_map iterates over so few
// keys. With an empty `order` the buckets are then sorted by their smallest index; otherwise they
// stay in the order of closing. `limits` (bytes) must not be empty; indices in `order` must exist.
BucketLayout ComputeBucketAssignmentBySize(std::span<const Gradient> gradients,
                                           std::span<const std::int64_t> limits,
                                           std::span<const int> order = {});

// Whether `order` names each of 0 to count - 1 once.
bool IsPermutation(std::span<const int> order, std::size_t count);

// Whose rules: they differ in the first iteration (1.9) and in what an explicit cap means (2.6).
enum class TorchRules : std::uint8_t { k1_9, k1_13, k2_6 };

inline constexpr std::int64_t kDefaultFirstBucketBytes = 1024 * 1024;
inline constexpr std::int64_t kDefaultBucketCapBytes = 25 * 1024 * 1024;

// The arguments of DDP that decide its buckets.
struct BucketOptions {
  // bucket_cap_mb; none: the user does not pass it, which means 25 MiB.
  std::optional<std::int64_t> cap_bytes = std::nullopt;
  // Limit of the first bucket. None: 1 MiB, but under k2_6 with an explicit cap that cap.
  std::optional<std::int64_t> first_cap_bytes = std::nullopt;
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool small_bucket_last = false;  // DDP_SET_LAST_BUCKET_CAP=1
  TorchRules rules = TorchRules::k2_6;
};

// True when DDP lays its buckets out anew, in the order in which gradients became ready. Otherwise
// the initial buckets stay for the whole training.
bool RebuildsBuckets(const BucketOptions& options);

// The limits, in bytes, of the initial and of the rebuilt buckets.
std::vector<std::int64_t> InitialLimits(const BucketOptions& options);
std::vector<std::int64_t> RebuiltLimits(const BucketOptions& options);

// The buckets of the first iteration (with static_graph: of the first two), in launch order.
BucketLayout InitialBuckets(std::span<const Gradient> gradients, const BucketOptions& options);

// The buckets of all later iterations, in launch order: rebuilt from `ready_order` (the order in
// which rank 0's gradients became ready, each index once), or the initial ones where DDP never
// rebuilds.
BucketLayout SteadyBuckets(std::span<const Gradient> gradients, std::span<const int> ready_order,
                           const BucketOptions& options);

// Bytes from a number of MiB as DDP takes bucket_cap_mb ("25", "0.5"), rounded down as int() does.
// Errors (kInvalidInput) name `option`, the text and what is accepted: at least one byte, at most
// 1 TiB.
Result<std::int64_t> ParseBucketMb(std::string_view option, std::string_view text);

// "1.9", "1.13", "2.6". Errors name `option`, the text and these.
Result<TorchRules> ParseTorchRules(std::string_view option, std::string_view text);
std::string_view NameOf(TorchRules rules);

}  // namespace lockstep::ddp
