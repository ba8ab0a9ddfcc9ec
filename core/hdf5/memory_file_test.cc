// Holds a file in memory against a plain buffer, for random writes of what was lent and of what was
// not, over each other.
#include "core/hdf5/memory_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/random.h"

namespace lockstep::hdf5 {
namespace {

using Bytes = std::vector<std::byte>;
using Pieces = std::vector<std::span<const std::byte>>;

Bytes RandomBytes(Random& random, std::size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(256));
  return bytes;
}

Bytes Joined(const Pieces& pieces) {
  Bytes bytes;
  for (const auto piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

TEST(MemoryFile, LentDataStayWhereTheyAre) {
  const Bytes lent(5000, std::byte{7}), own(100, std::byte{9});
  MemoryFile file({lent});
  ASSERT_TRUE(file.SetEnd(9000));
  file.Write(2000, lent);
  file.Write(8000, own);
  const Pieces pieces = file.Pieces(512);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].size(), 2000u - 512);
  EXPECT_EQ(pieces[1].data(), lent.data());
  EXPECT_EQ(pieces[2].size(), 2000u);
  EXPECT_NE(Joined(pieces)[8000 - 512], std::byte{0});
}

// As a plain buffer would: whatever is lent, overwritten and read.
TEST(MemoryFile, HoldsWhatWasWrittenLast) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const std::vector<Bytes> lent = {
        RandomBytes(random, 3000), RandomBytes(random, 1), RandomBytes(random, 400), {}};
    MemoryFile file({lent[0], lent[1], lent[2], lent[3]});
    Bytes plain(512);
    ASSERT_TRUE(file.SetEnd(512));
    for (int step = 0; step < 60; ++step) {
      if (random.Below(4) == 0) {
        plain.resize(plain.size() + random.Below(1 << 18));
        ASSERT_TRUE(file.SetEnd(plain.size()));
      }
      const Bytes own = RandomBytes(random, random.Below(500));
      std::span<const std::byte> data = own;
      if (random.Below(2) == 0) {
        data = lent[random.Below(lent.size())];
        if (random.Below(3) == 0) data = data.subspan(data.size() / 3, data.size() / 2);
      }
      data = data.first(std::min(data.size(), plain.size() - 512));
      const std::size_t room = plain.size() - 512 - data.size();
      const std::size_t place = 512 + random.Below(std::min<std::size_t>(room, 8000) + 1);
      file.Write(place, data);
      std::ranges::copy(data, plain.begin() + static_cast<std::ptrdiff_t>(place));
      const std::size_t from = random.Below(plain.size());
      Bytes read(std::min<std::size_t>(plain.size() - from, random.Below(6000)));
      file.Read(from, read);
      ASSERT_TRUE(
          std::equal(read.begin(), read.end(), plain.begin() + static_cast<std::ptrdiff_t>(from)));
    }
    EXPECT_EQ(Joined(file.Pieces(0)), plain) << seed;
  }
}

}  // namespace
}  // namespace lockstep::hdf5
