// PyTorch's compute_bucket_assignment_by_size and the limits that each version gives it. A bucket
// closes after the gradient that reaches its limit. The three sets of rules are those of PyTorch
// 1.9, 1.13 and 2.6, read from reducer.cpp and distributed.py.
#include "core/ddp/buckets.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <ranges>

#include "core/base/check.h"

namespace lockstep::ddp {
namespace {

// The bucket of one (type, device) that is being filled.
struct OpenBucket {
  Bucket bucket;
  std::size_t limit = 0;  // index of the limit that closes it
};

OpenBucket& OpenBucketFor(const Gradient& gradient, std::vector<OpenBucket>& open) {
  for (OpenBucket& candidate : open) {
    const Bucket& bucket = candidate.bucket;
    if (bucket.type == gradient.type && bucket.device == gradient.device) return candidate;
  }
  open.push_back({Bucket{.type = gradient.type, .device = gradient.device}});
  return open.back();
}

Bucket SparseBucket(const Gradient& gradient, int index) {
  return Bucket{.type = gradient.type,
                .device = gradient.device,
                .sparse = true,
                .elements = gradient.numel,
                .params = {index}};
}

void SortBySmallestIndex(BucketLayout& layout) {
  std::ranges::sort(layout, [](const Bucket& a, const Bucket& b) {
    return *std::ranges::min_element(a.params) < *std::ranges::min_element(b.params);
  });
}

std::int64_t Cap(const BucketOptions& options) {
  return options.cap_bytes.value_or(kDefaultBucketCapBytes);
}

std::int64_t FirstCap(const BucketOptions& options) {
  if (options.first_cap_bytes) return *options.first_cap_bytes;
  const bool first_follows_cap = options.rules == TorchRules::k2_6 && options.cap_bytes;
  return first_follows_cap ? *options.cap_bytes : kDefaultFirstBucketBytes;
}

}  // namespace

bool IsPermutation(std::span<const int> order, std::size_t count) {
  std::vector<int> sorted(order.begin(), order.end());
  std::ranges::sort(sorted);
  return std::ranges::equal(sorted, std::views::iota(0, static_cast<int>(count)));
}

BucketLayout ComputeBucketAssignmentBySize(std::span<const Gradient> gradients,
                                           std::span<const std::int64_t> limits,
                                           std::span<const int> order) {
  LOCKSTEP_CHECK(!limits.empty(), "bucket assignment needs a limit");
  BucketLayout layout;
  std::vector<OpenBucket> open;  // one a (type, device), in order of first appearance
  const std::size_t count = order.empty() ? gradients.size() : order.size();
  for (std::size_t i = 0; i < count; ++i) {
    const int index = order.empty() ? static_cast<int>(i) : order[i];
    LOCKSTEP_CHECK(index >= 0 && static_cast<std::size_t>(index) < gradients.size(),
                   "an index without a gradient");
    const Gradient& gradient = gradients[index];
    if (gradient.sparse) {
      layout.push_back(SparseBucket(gradient, index));
      continue;
    }
    OpenBucket& current = OpenBucketFor(gradient, open);
    current.bucket.params.push_back(index);
    current.bucket.elements += gradient.numel;
    if (current.bucket.bytes() < limits[current.limit]) continue;
    layout.push_back(current.bucket);
    current.bucket.params.clear();
    current.bucket.elements = 0;
    current.limit = std::min(current.limit + 1, limits.size() - 1);
  }
  for (auto left = open.rbegin(); left != open.rend(); ++left) {
    if (!left->bucket.params.empty()) layout.push_back(std::move(left->bucket));
  }
  if (order.empty()) SortBySmallestIndex(layout);
  return layout;
}

bool RebuildsBuckets(const BucketOptions& options) {
  return options.static_graph || !options.find_unused_parameters;
}

std::vector<std::int64_t> InitialLimits(const BucketOptions& options) {
  // Since 1.10 buckets that will be rebuilt begin as one: the first iteration does not overlap.
  if (options.rules != TorchRules::k1_9 && RebuildsBuckets(options)) {
    return {std::numeric_limits<std::int64_t>::max()};
  }
  return {FirstCap(options), Cap(options)};
}

std::vector<std::int64_t> RebuiltLimits(const BucketOptions& options) {
  return {FirstCap(options), Cap(options)};
}

BucketLayout InitialBuckets(std::span<const Gradient> gradients, const BucketOptions& options) {
  BucketLayout layout = ComputeBucketAssignmentBySize(gradients, InitialLimits(options));
  // Gradients come roughly in reverse order of registration; within a bucket DDP does not care.
  std::ranges::reverse(layout);
  return layout;
}

BucketLayout SteadyBuckets(std::span<const Gradient> gradients, std::span<const int> ready_order,
                           const BucketOptions& options) {
  LOCKSTEP_CHECK(IsPermutation(ready_order, gradients.size()),
                 "a ready order that is not a permutation");
  if (!RebuildsBuckets(options)) return InitialBuckets(gradients, options);
  std::vector<int> order(ready_order.begin(), ready_order.end());
  if (options.small_bucket_last) std::ranges::reverse(order);
  BucketLayout layout = ComputeBucketAssignmentBySize(gradients, RebuiltLimits(options), order);
  if (options.small_bucket_last) std::ranges::reverse(layout);
  return layout;
}

Result<std::int64_t> ParseBucketMb(std::string_view option, std::string_view text) {
  double mb = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, mb);
  constexpr double kMaxMb = 1024 * 1024;
  const double bytes = mb * 1024 * 1024;
  if (error != std::errc() || stop != end || !(bytes >= 1) || mb > kMaxMb) {
    return InvalidInput(
        "{}: '{}' is not a bucket size; write MiB such as 25 or 0.5, from one byte to 1048576 MiB",
        option, text);
  }
  return static_cast<std::int64_t>(bytes);
}

Result<TorchRules> ParseTorchRules(std::string_view option, std::string_view text) {
  for (const TorchRules rules : {TorchRules::k1_9, TorchRules::k1_13, TorchRules::k2_6}) {
    if (text == NameOf(rules)) return rules;
  }
  return InvalidInput(
      "{}: '{}' is not a PyTorch version with bucket rules of its own; choose 1.9, 1.13 or 2.6",
      option, text);
}

std::string_view NameOf(TorchRules rules) {
  static constexpr std::string_view kNames[] = {"1.9", "1.13", "2.6"};
  return kNames[static_cast<std::size_t>(rules)];
}

}  // namespace lockstep::ddp
