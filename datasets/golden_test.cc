// The manifests and the bucket layouts of the three models against what PyTorch's
// DistributedDataParallel really did (recorded in testdata/, PyTorch 1.13.1 and 2.6.0).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/collective/data_type.h"
#include "core/ddp/buckets.h"
#include "datasets/manifest.h"

namespace lockstep::datasets {
namespace {

using ::testing::ElementsAre;

using Indices = std::vector<std::vector<int>>;

std::vector<std::int64_t> ElementsOf(const ddp::BucketLayout& layout) {
  std::vector<std::int64_t> elements;
  for (const ddp::Bucket& bucket : layout) elements.push_back(bucket.elements);
  return elements;
}

Indices IndicesOf(const ddp::BucketLayout& layout) {
  Indices indices;
  for (const ddp::Bucket& bucket : layout) indices.push_back(bucket.params);
  return indices;
}

std::int64_t ElementsOf(const Manifest& manifest) {
  std::int64_t elements = 0;
  for (const ModelTensor& param : manifest.params) elements += param.numel;
  return elements;
}

class Golden : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    path_ = "datasets/testdata/" + GetParam() + "_golden.json";
    std::ifstream file(path_);
    ASSERT_TRUE(file.is_open()) << path_;
    golden_ = nlohmann::json::parse(file);
    const auto manifest = LoadManifest(GetParam());
    ASSERT_TRUE(manifest.ok()) << manifest.status().message();
    manifest_ = *manifest;
  }

  void ExpectLayout(const char* key, const ddp::BucketLayout& layout) const {
    EXPECT_EQ(IndicesOf(layout), golden_[key].get<Indices>()) << key;
    std::int64_t elements = 0;
    for (const ddp::Bucket& bucket : layout) elements += bucket.elements;
    EXPECT_EQ(elements, ElementsOf(manifest_));
  }

  std::string path_;
  nlohmann::json golden_;
  Manifest manifest_;
};

TEST_P(Golden, ManifestHasTheSameParameters) {
  ASSERT_EQ(manifest_.params.size(), golden_["params"].size());
  for (std::size_t i = 0; i < manifest_.params.size(); ++i) {
    const auto& recorded = golden_["params"][i];
    EXPECT_EQ(manifest_.params[i].name, recorded["name"]);
    EXPECT_EQ(manifest_.params[i].shape, recorded["shape"].get<std::vector<std::int64_t>>());
    EXPECT_EQ(manifest_.params[i].numel, recorded["numel"]);
    EXPECT_EQ(manifest_.params[i].type, collective::DataType::kF32);
  }
  EXPECT_EQ(manifest_.name, golden_["name"]);
  EXPECT_EQ(manifest_.ready_order, golden_["ready_order"].get<std::vector<int>>());
}

TEST_P(Golden, ManifestHasTheSameBuffers) {
  const std::map<std::string, collective::DataType> types = {
      {"torch.float32", collective::DataType::kF32},
      {"torch.int64", collective::DataType::kI64},
      {"torch.uint8", collective::DataType::kU8}};
  ASSERT_EQ(manifest_.buffers.size(), golden_["buffers"].size());
  for (std::size_t i = 0; i < manifest_.buffers.size(); ++i) {
    const auto& recorded = golden_["buffers"][i];
    EXPECT_EQ(manifest_.buffers[i].name, recorded["name"]);
    EXPECT_EQ(manifest_.buffers[i].shape, recorded["shape"].get<std::vector<std::int64_t>>());
    EXPECT_EQ(manifest_.buffers[i].type, types.at(recorded["dtype"]));
  }
}

TEST_P(Golden, BucketsOfEveryMode) {
  const std::vector<ddp::Gradient> gradients = GradientsOf(manifest_);
  for (const ddp::TorchRules rules : {ddp::TorchRules::k1_13, ddp::TorchRules::k2_6}) {
    ddp::BucketOptions options = {.rules = rules};
    ExpectLayout("iter1_buckets", ddp::InitialBuckets(gradients, options));
    ExpectLayout("rebuilt_buckets", ddp::SteadyBuckets(gradients, manifest_.ready_order, options));
    options.find_unused_parameters = true;
    ExpectLayout("unused_mode_buckets", ddp::InitialBuckets(gradients, options));
    ExpectLayout("unused_mode_buckets",
                 ddp::SteadyBuckets(gradients, manifest_.ready_order, options));
    options.static_graph = true;
    ExpectLayout("iter1_buckets", ddp::InitialBuckets(gradients, options));
    ExpectLayout("rebuilt_buckets", ddp::SteadyBuckets(gradients, manifest_.ready_order, options));
  }
  const ddp::BucketOptions old = {.rules = ddp::TorchRules::k1_9};
  ExpectLayout("unused_mode_buckets", ddp::InitialBuckets(gradients, old));
  ExpectLayout("rebuilt_buckets", ddp::SteadyBuckets(gradients, manifest_.ready_order, old));
}

TEST_P(Golden, TheRecordingItselfIsAManifest) {
  const auto recorded = LoadManifest(path_);
  ASSERT_TRUE(recorded.ok()) << recorded.status().message();
  EXPECT_EQ(recorded->ready_order, manifest_.ready_order);
  EXPECT_EQ(ElementsOf(*recorded), ElementsOf(manifest_));
  EXPECT_EQ(recorded->buffers.size(), manifest_.buffers.size());
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, ::testing::Values("resnet50", "bert_base", "gpt2_small"),
                         [](const auto& model) { return model.param; });

// Recorded without parameter indices.
TEST(GoldenSizes, Resnet50) {
  const auto manifest = LoadManifest("resnet50");
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  EXPECT_THAT(ElementsOf(ddp::SteadyBuckets(GradientsOf(*manifest), manifest->ready_order, {})),
              ElementsAre(2049000, 7875584, 6563840, 6637568, 2431040));
  const auto bf16 = GradientsOf(*manifest, collective::DataType::kBf16);
  EXPECT_THAT(ElementsOf(ddp::SteadyBuckets(bf16, manifest->ready_order, {})),
              ElementsAre(2049000, 14439424, 9068608));
  std::map<collective::DataType, std::int64_t> buffer_elements;
  for (const ModelTensor& buffer : manifest->buffers) buffer_elements[buffer.type] += buffer.numel;
  EXPECT_EQ(buffer_elements[collective::DataType::kF32], 53120);
  EXPECT_EQ(buffer_elements[collective::DataType::kI64], 53);
}

}  // namespace
}  // namespace lockstep::datasets
