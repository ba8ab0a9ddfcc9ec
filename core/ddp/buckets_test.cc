// Every row of the modes' table, and 2,000 random models against a second implementation. That one
// cuts lists into pieces instead of filling open buckets, so it does not share a mistake.
#include "core/ddp/buckets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/random.h"

namespace lockstep::ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Indices = std::vector<std::vector<int>>;

constexpr std::int64_t kMiB = 1024 * 1024;

Indices IndicesOf(const BucketLayout& layout) {
  Indices indices;
  for (const Bucket& bucket : layout) indices.push_back(bucket.params);
  return indices;
}

// Four gradients of 1 MiB f32 each.
std::vector<Gradient> FourMebibytes() {
  return std::vector<Gradient>(4, Gradient{.numel = kMiB / 4});
}

TEST(BucketAssignment, ClosesAfterTheGradientThatReachesTheLimit) {
  const std::vector<Gradient> gradients = {{.numel = 3}, {.numel = 5}, {.numel = 1}, {.numel = 1}};
  const std::vector<std::int64_t> limits = {16};
  EXPECT_EQ(IndicesOf(ComputeBucketAssignmentBySize(gradients, limits)), (Indices{{0, 1}, {2, 3}}));
}

TEST(BucketAssignment, EveryTypeAndDeviceAdvancesThroughTheLimitsAlone) {
  const Gradient f32 = {.numel = 1};
  const Gradient f64 = {.numel = 1, .type = collective::DataType::kF64};
  const Gradient there = {.numel = 1, .device = 1};
  const std::vector<Gradient> gradients = {f32, f64, there, f32, f64, there, f32};
  const std::vector<std::int64_t> limits = {4, 8};
  const BucketLayout layout = ComputeBucketAssignmentBySize(gradients, limits);
  EXPECT_EQ(IndicesOf(layout), (Indices{{0}, {1}, {2}, {3, 6}, {4}, {5}}));
  EXPECT_EQ(layout[1].type, collective::DataType::kF64);
  EXPECT_EQ(layout[1].bytes(), 8);
  EXPECT_EQ(layout[2].device, 1);
  EXPECT_EQ(layout[3].elements, 2);
}

TEST(BucketAssignment, WithAnOrderWhatIsLeftComesLastAndReversed) {
  const std::vector<Gradient> gradients = {{.numel = 1, .type = collective::DataType::kF16},
                                           {.numel = 1, .type = collective::DataType::kF64},
                                           {.numel = 1, .type = collective::DataType::kF32}};
  const std::vector<int> order = {0, 1, 2};
  const std::vector<std::int64_t> limits = {1000};
  EXPECT_EQ(IndicesOf(ComputeBucketAssignmentBySize(gradients, limits, order)),
            (Indices{{2}, {1}, {0}}));
  EXPECT_EQ(IndicesOf(ComputeBucketAssignmentBySize(gradients, limits)), (Indices{{0}, {1}, {2}}));
}

TEST(BucketAssignment, ASparseGradientIsABucketWhereItIsMet) {
  const std::vector<Gradient> gradients = {
      {.numel = 1}, {.numel = 9, .sparse = true}, {.numel = 1}};
  const std::vector<int> order = {2, 1, 0};
  const std::vector<std::int64_t> limits = {1000};
  const BucketLayout layout = ComputeBucketAssignmentBySize(gradients, limits, order);
  EXPECT_EQ(IndicesOf(layout), (Indices{{1}, {2, 0}}));
  EXPECT_TRUE(layout[0].sparse);
  EXPECT_FALSE(layout[1].sparse);
}

TEST(BucketAssignment, NoGradientsNoBuckets) {
  const std::vector<std::int64_t> limits = {1};
  EXPECT_TRUE(ComputeBucketAssignmentBySize({}, limits).empty());
}

TEST(BucketModes, LimitsOfEveryRowOfTheTable) {
  constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  BucketOptions options;
  EXPECT_THAT(InitialLimits(options), ElementsAre(kUnlimited));
  EXPECT_THAT(RebuiltLimits(options), ElementsAre(kMiB, 25 * kMiB));
  options.find_unused_parameters = true;
  EXPECT_THAT(InitialLimits(options), ElementsAre(kMiB, 25 * kMiB));
  EXPECT_FALSE(RebuildsBuckets(options));
  options.static_graph = true;
  EXPECT_THAT(InitialLimits(options), ElementsAre(kUnlimited));
  EXPECT_TRUE(RebuildsBuckets(options));
  options = {.rules = TorchRules::k1_9};
  EXPECT_THAT(InitialLimits(options), ElementsAre(kMiB, 25 * kMiB));
}

TEST(BucketModes, AnExplicitCapIsAlsoTheFirstBucketsSinceTorch26) {
  BucketOptions options = {.cap_bytes = 25 * kMiB};
  EXPECT_THAT(RebuiltLimits(options), ElementsAre(25 * kMiB, 25 * kMiB));
  options.rules = TorchRules::k1_13;
  EXPECT_THAT(RebuiltLimits(options), ElementsAre(kMiB, 25 * kMiB));
  options.first_cap_bytes = 2 * kMiB;
  EXPECT_THAT(RebuiltLimits(options), ElementsAre(2 * kMiB, 25 * kMiB));
  options.rules = TorchRules::k2_6;
  EXPECT_THAT(RebuiltLimits(options), ElementsAre(2 * kMiB, 25 * kMiB));
}

TEST(BucketModes, InitialBucketsAreLaunchedLastRegisteredFirst) {
  const BucketOptions unused = {
      .cap_bytes = 2 * kMiB, .first_cap_bytes = kMiB, .find_unused_parameters = true};
  EXPECT_EQ(IndicesOf(InitialBuckets(FourMebibytes(), unused)), (Indices{{3}, {1, 2}, {0}}));
  std::vector<Gradient> mixed = FourMebibytes();
  mixed[2].type = collective::DataType::kBf16;
  EXPECT_EQ(IndicesOf(InitialBuckets(mixed, {})), (Indices{{2}, {0, 1, 3}}));
}

TEST(BucketModes, SteadyBucketsFollowTheReadyOrderUnlessNeverRebuilt) {
  const std::vector<int> ready = {2, 3, 1, 0};
  BucketOptions options = {.cap_bytes = 2 * kMiB, .first_cap_bytes = kMiB};
  EXPECT_EQ(IndicesOf(SteadyBuckets(FourMebibytes(), ready, options)), (Indices{{2}, {3, 1}, {0}}));
  options.small_bucket_last = true;
  EXPECT_EQ(IndicesOf(SteadyBuckets(FourMebibytes(), ready, options)), (Indices{{2}, {1, 3}, {0}}));
  options.find_unused_parameters = true;
  EXPECT_EQ(IndicesOf(SteadyBuckets(FourMebibytes(), ready, options)), (Indices{{3}, {1, 2}, {0}}));
}

TEST(BucketModes, TextOfSizesAndVersions) {
  EXPECT_EQ(*ParseBucketMb("--cap", "25"), 25 * kMiB);
  EXPECT_EQ(*ParseBucketMb("--cap", "0.5"), kMiB / 2);
  EXPECT_EQ(*ParseBucketMb("--cap", "0.000001"), 1);
  for (const char* text : {"", "0", "-1", "x", "25M", "nan", "inf", "1e9", "1,5", " 1"}) {
    const auto result = ParseBucketMb("--cap", text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_THAT(result.status().message(), HasSubstr(fmt::format("--cap: '{}'", text)));
  }
  for (const TorchRules rules : {TorchRules::k1_9, TorchRules::k1_13, TorchRules::k2_6}) {
    EXPECT_EQ(*ParseTorchRules("--torch", NameOf(rules)), rules);
  }
  EXPECT_FALSE(ParseTorchRules("--torch", "3.0").ok());
}

// The straightforward second implementation. Not a stream through open buckets: the gradients of
// each (type, device) are cut into pieces first, then all pieces are put into order.
struct Piece {
  bool closed;
  std::size_t when;  // closed: position of the last gradient; else of the key's first gradient
  std::vector<int> params;
};

void Cut(const std::vector<std::pair<std::size_t, int>>& members, std::span<const Gradient> all,
         std::span<const std::int64_t> limits, std::vector<Piece>& pieces) {
  std::size_t begin = 0;
  for (std::size_t piece = 0; begin < members.size(); ++piece) {
    const std::int64_t limit = limits[std::min(piece, limits.size() - 1)];
    std::int64_t bytes = 0;
    std::size_t end = begin;
    bool closed = false;
    while (end < members.size() && !closed) {
      const Gradient& gradient = all[members[end++].second];
      bytes += gradient.numel * collective::SizeOf(gradient.type);
      closed = bytes >= limit;
    }
    Piece cut{closed, closed ? members[end - 1].first : members[0].first, {}};
    for (std::size_t i = begin; i < end; ++i) cut.params.push_back(members[i].second);
    pieces.push_back(cut);
    begin = end;
  }
}

Indices SecondImplementation(std::span<const Gradient> gradients,
                             std::span<const std::int64_t> limits, std::vector<int> order) {
  const bool by_index = order.empty();
  if (by_index) {
    order.resize(gradients.size());
    std::iota(order.begin(), order.end(), 0);
  }
  std::map<std::pair<collective::DataType, int>, std::vector<std::pair<std::size_t, int>>> members;
  std::vector<Piece> pieces;
  for (std::size_t position = 0; position < order.size(); ++position) {
    const Gradient& gradient = gradients[order[position]];
    if (gradient.sparse) {
      pieces.push_back({true, position, {order[position]}});
    } else {
      members[{gradient.type, gradient.device}].push_back({position, order[position]});
    }
  }
  for (const auto& [key, list] : members) Cut(list, gradients, limits, pieces);
  std::sort(pieces.begin(), pieces.end(), [&](const Piece& a, const Piece& b) {
    if (by_index) return std::ranges::min(a.params) < std::ranges::min(b.params);
    if (a.closed != b.closed) return a.closed;
    return a.closed ? a.when < b.when : a.when > b.when;
  });
  Indices indices;
  for (const Piece& piece : pieces) indices.push_back(piece.params);
  return indices;
}

std::vector<Gradient> RandomGradients(Random& random) {
  constexpr collective::DataType kTypes[] = {collective::DataType::kF32,
                                             collective::DataType::kBf16,
                                             collective::DataType::kF64, collective::DataType::kU8};
  const std::uint64_t types = 1 + random.Below(4);
  const std::uint64_t devices = 1 + random.Below(2);
  const bool some_sparse = random.Below(3) == 0;
  std::vector<Gradient> gradients(random.Below(120));
  for (Gradient& gradient : gradients) {
    const std::uint64_t magnitude = 1 + random.Below(16);
    gradient.numel = random.Below(10) == 0
                         ? 0
                         : static_cast<std::int64_t>(random.Below(std::uint64_t{1} << magnitude));
    gradient.type = kTypes[random.Below(types)];
    gradient.device = static_cast<int>(random.Below(devices));
    gradient.sparse = some_sparse && random.Below(6) == 0;
  }
  return gradients;
}

TEST(BucketAssignment, AgreesWithASecondImplementationIn2000RandomCases) {
  Random random(20240229);
  for (int n = 0; n < 2000; ++n) {
    const std::vector<Gradient> gradients = RandomGradients(random);
    std::vector<std::int64_t> limits(1 + random.Below(4));
    for (std::int64_t& limit : limits) {
      limit = static_cast<std::int64_t>(random.Below(std::uint64_t{1} << (1 + random.Below(20))));
    }
    std::vector<int> order;
    if (n % 2 == 0) {
      order.resize(gradients.size());
      std::iota(order.begin(), order.end(), 0);
      random.Shuffle(order);
    }
    const BucketLayout layout = ComputeBucketAssignmentBySize(gradients, limits, order);
    ASSERT_EQ(IndicesOf(layout), SecondImplementation(gradients, limits, order))
        << "case " << n << ", limits " << fmt::format("{}", limits);
    for (const Bucket& bucket : layout) {
      std::int64_t elements = 0;
      for (const int index : bucket.params) {
        elements += gradients[index].numel;
        ASSERT_EQ(gradients[index].type, bucket.type) << "case " << n;
        ASSERT_EQ(gradients[index].device, bucket.device) << "case " << n;
      }
      ASSERT_EQ(bucket.elements, elements) << "case " << n;
    }
  }
}

}  // namespace
}  // namespace lockstep::ddp
