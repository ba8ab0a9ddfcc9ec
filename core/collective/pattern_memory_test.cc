// Patterns in memory that is not the host's hold the same bits as on the host. The memory here is
// the host's all the same, written and compared one element at a time, as a device does it.
#include "core/collective/pattern_memory.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "core/collective/pattern.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace lockstep::collective {
namespace {

class ElementMemory final : public PatternMemory {
 public:
  void Generate(const PatternPiece& piece, void* data) override {
    WithPatternType(piece.type, [&]<DataType kType>() {
      auto* words = static_cast<typename PatternEncoding<kType>::Word*>(data);
      for (std::int64_t i = 0; i < piece.count; ++i) {
        words[i] = PatternElement<kType>(piece, piece.begin + i);
      }
    });
  }
  void Fill(DataType type, std::uint64_t bits, void* data, std::int64_t count) override {
    const auto size = static_cast<std::size_t>(SizeOf(type));
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(static_cast<std::byte*>(data) + i * SizeOf(type), &bits, size);
    }
  }
  PatternDifference Compare(const PatternPiece& piece, const void* data) override {
    PatternDifference difference;
    const auto size = static_cast<std::size_t>(SizeOf(piece.type));
    WithPatternType(piece.type, [&]<DataType kType>() {
      for (std::int64_t i = piece.count - 1; i >= 0; --i) {
        const auto expected = PatternElement<kType>(piece, piece.begin + i);
        const std::byte* got = static_cast<const std::byte*>(data) + i * SizeOf(piece.type);
        if (std::memcmp(&expected, got, size) == 0) continue;
        ++difference.wrong;
        difference.first = i;
        std::memcpy(&difference.got, got, size);
      }
    });
    return difference;
  }
  PatternDifference CompareTile(DataType, const void*, std::int64_t count, std::span<const double>,
                                std::int64_t, double) override {
    return {count, 0, 0};  // nobody here has tiles
  }
};

constexpr int kWorld = 3;
constexpr std::int64_t kCount = 2500;  // more than two blocks
constexpr std::uint64_t kSeed = 42;

std::vector<Operation> Operations() {
  std::vector<Operation> operations;
  for (const DataType type : AllDataTypes()) {
    Operation operation;
    operation.type = type;
    operation.count = kCount;
    for (const Collective copies : {Collective::kBroadcast, Collective::kAllGather}) {
      operation.collective = copies;
      operations.push_back(operation);
    }
    for (const Reduction reduction :
         {Reduction::kSum, Reduction::kProd, Reduction::kMin, Reduction::kMax}) {
      operation.reduction = reduction;
      operation.collective = Collective::kAllReduce;
      operations.push_back(operation);
      operation.collective = Collective::kReduceScatter;
      operations.push_back(operation);
    }
  }
  return operations;
}

// Aligned for every type.
using Data = std::vector<std::uint64_t>;
Data Room(std::int64_t bytes) { return Data(static_cast<std::size_t>(bytes / 8 + 1), 0); }

TEST(PatternMemory, InputsAreThoseOfTheHost) {
  ElementMemory memory;
  for (const Operation& operation : Operations()) {
    const Pattern host(kSeed, operation, kWorld);
    const Pattern elsewhere(kSeed, operation, kWorld, &memory);
    for (int rank = 0; rank < kWorld; ++rank) {
      Data a = Room(kCount * 8);
      Data b = a;
      host.FillSend(a.data(), 7, kCount - 7, rank, 5);
      elsewhere.FillSend(b.data(), 7, kCount - 7, rank, 5);
      ASSERT_EQ(a, b) << Describe(operation) << " rank " << rank;
    }
    Data a = Room(kCount * 8);
    Data b = a;
    host.Poison(a.data(), 0, kCount);
    elsewhere.Poison(b.data(), 0, kCount);
    ASSERT_EQ(a, b) << Describe(operation);
  }
}

// The right result, as the host's own check accepts it; found by asking it bit for bit would be
// slow, so the memory generates it.
TEST(PatternMemory, ResultsAreThoseOfTheHostAndAWrongBitIsFound) {
  ElementMemory memory;
  for (const Operation& operation : Operations()) {
    if (operation.collective != Collective::kAllReduce) continue;
    const Pattern host(kSeed, operation, kWorld);
    const Pattern elsewhere(kSeed, operation, kWorld, &memory);
    // One rank's contribution alone is the result of a world of one rank.
    const Pattern one(kSeed, operation, 1);
    const Pattern one_elsewhere(kSeed, operation, 1, &memory);
    Data data = Room(kCount * 8);
    one.FillSend(data.data(), 0, kCount, 0, 9);
    CheckReport report;
    one_elsewhere.CheckRecv(data.data(), 0, kCount, 0, 9, report);
    EXPECT_EQ(report.checked, kCount);
    ASSERT_EQ(report.wrong, 0) << Describe(operation);
    // What is wrong for the host is wrong elsewhere, at the same place, in the same words.
    auto* bytes = reinterpret_cast<unsigned char*>(data.data());
    bytes[1234 * SizeOf(operation.type)] ^= 1;
    CheckReport host_report;
    one.CheckRecv(data.data(), 0, kCount, 0, 9, host_report);
    one_elsewhere.CheckRecv(data.data(), 0, kCount, 0, 9, report);
    ASSERT_EQ(report.wrong, 1);
    ASSERT_EQ(host_report.wrong, 1);
    EXPECT_EQ(report.first[0].element, 1234);
    EXPECT_EQ(report.first[0].expected, host_report.first[0].expected);
    EXPECT_EQ(report.first[0].got, host_report.first[0].got);
    // All ranks' results: poison differs everywhere for both.
    CheckReport poisoned, poisoned_elsewhere;
    host.Poison(data.data(), 0, kCount);
    host.CheckRecv(data.data(), 0, kCount, 1, 9, poisoned);
    elsewhere.CheckRecv(data.data(), 0, kCount, 1, 9, poisoned_elsewhere);
    EXPECT_EQ(poisoned.wrong, kCount);
    EXPECT_EQ(poisoned_elsewhere.wrong, kCount);
    EXPECT_EQ(poisoned.first[0].expected, poisoned_elsewhere.first[0].expected)
        << Describe(operation);
  }
}

TEST(PatternMemory, GatheredBlocksAreEachSendersOwn) {
  ElementMemory memory;
  Operation operation;
  operation.collective = Collective::kAllGather;
  operation.count = 100;
  const Pattern host(kSeed, operation, kWorld);
  const Pattern elsewhere(kSeed, operation, kWorld, &memory);
  Data data = Room(kWorld * 100 * 4);
  for (int sender = 0; sender < kWorld; ++sender) {
    host.FillSend(reinterpret_cast<float*>(data.data()) + sender * 100, 0, 100, sender, 1);
  }
  CheckReport report;
  elsewhere.CheckRecv(data.data(), 0, kWorld * 100, 0, 1, report);
  EXPECT_EQ(report.wrong, 0);
  reinterpret_cast<float*>(data.data())[250] = 3;
  elsewhere.CheckRecv(data.data(), 0, kWorld * 100, 0, 1, report);
  EXPECT_EQ(report.wrong, 1);
  EXPECT_EQ(report.first[0].element, 250);
}

// FNV-1a over inputs of all operations of a type, in pieces of odd sizes at odd places.
std::uint64_t HashOfData(DataType type) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  std::vector<unsigned char> memory(3001 * 8);
  const auto add = [&](const Pattern& pattern, int rank, std::int64_t begin, std::int64_t count) {
    unsigned char* const data = memory.data() + SizeOf(type);  // aligned for the type alone
    pattern.FillSend(data, begin, count, rank, 5);
    for (std::int64_t i = 0; i < count * SizeOf(type); ++i) {
      hash = (hash ^ data[i]) * 0x100000001b3u;
    }
  };
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather}) {
    for (const Reduction reduction :
         {Reduction::kSum, Reduction::kProd, Reduction::kMin, Reduction::kMax}) {
      for (const int world : {1, 2, 3, 100, 300, 40'000, Pattern::kMaxWorldSize}) {
        const Operation operation = {
            .collective = collective, .type = type, .reduction = reduction, .count = 5000};
        const Pattern pattern(20240607, operation, world);
        const std::pair<std::int64_t, std::int64_t> ranges[] = {
            {0, 1}, {3, 7}, {1000, 31}, {1023, 2}, {77, 2999}, {1ll << 40, 129}};
        for (const auto& [begin, count] : ranges) {
          for (const int rank : {0, world / 2, world - 1}) add(pattern, rank, begin, count);
        }
      }
    }
  }
  return hash;
}

// Files and ranks of several versions meet: the data stay what they are.
TEST(Pattern, DataAreThoseOfEveryVersion) {
  const std::map<DataType, std::uint64_t> hashes = {
      {DataType::kF16, 0x791cea2ff615bd24u},    {DataType::kBf16, 0x54933539fa7ac067u},
      {DataType::kF32, 0x4cfcbb61c543cad5u},    {DataType::kF64, 0x0ed751d0d152c7fbu},
      {DataType::kI8, 0xf689f475db9543f0u},     {DataType::kI32, 0xe66833809e1633a1u},
      {DataType::kI64, 0x87f04b6015ea9623u},    {DataType::kU8, 0x491724d869f6ae20u},
      {DataType::kF8E4M3, 0xe61be99709c6795eu}, {DataType::kF8E5M2, 0x8132c5f14b85ad05u},
  };
  for (const DataType type : AllDataTypes()) {
    EXPECT_EQ(HashOfData(type), hashes.at(type)) << NameOf(type) << std::hex << HashOfData(type);
  }
}

}  // namespace
}  // namespace lockstep::collective
