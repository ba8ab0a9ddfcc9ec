// No damage by accident gets through: HDF5 itself trusts a file and can crash or hang on a bad one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/base/random.h"
#include "results/store/seal.h"
#include "results/store/store.h"
#include "results/store/testing/random_run.h"

namespace lockstep::results::store {
namespace {

class CorruptionTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/corruption.h5";
    run_ = RandomRun(GetParam());
    ASSERT_TRUE(WriteRun(run_, path_).ok());
    std::ifstream file(path_, std::ios::binary);
    whole_.assign(std::istreambuf_iterator<char>(file), {});
  }
  Result<store::Run> ReadBack(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return ReadRun(path_);
  }
  std::size_t Somewhere() { return random_.Below(whole_.size()); }

  Random random_{GetParam()};
  std::string path_, whole_;
  store::Run run_;
};

TEST_P(CorruptionTest, ATruncatedFileIsAnError) {
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = Somewhere();
    EXPECT_FALSE(ReadBack(whole_.substr(0, size)).ok()) << size;
  }
}

TEST_P(CorruptionTest, AFlippedBitIsAnErrorOrWithoutEffect) {
  for (int i = 0; i < 500; ++i) {
    std::string bytes = whole_;
    const std::size_t at = i < 100 ? random_.Below(kSealBytes) : Somewhere();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random_.Below(8)));
    const auto read = ReadBack(bytes);
    EXPECT_TRUE(!read.ok() || at < kSealBytes) << at;
    EXPECT_TRUE(!read.ok() || BytesOf(*read) == BytesOf(run_)) << at;
  }
}

TEST_P(CorruptionTest, ABlockOfZerosOrMovedBytesIsAnError) {
  for (int i = 0; i < 200; ++i) {
    std::string bytes = whole_;
    const std::size_t from = Somewhere(), to = Somewhere();
    const std::size_t size = std::min({whole_.size() - from, whole_.size() - to,
                                       static_cast<std::size_t>(1 + random_.Below(5000))});
    if (i % 2 == 0)
      bytes.replace(to, size, size, '\0');
    else
      bytes.replace(to, size, whole_, from, size);
    const auto read = ReadBack(bytes);
    EXPECT_TRUE(!read.ok() || BytesOf(*read) == BytesOf(run_)) << from << " " << to;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CorruptionTest, testing::Range<std::uint64_t>(0, 5));

}  // namespace
}  // namespace lockstep::results::store
