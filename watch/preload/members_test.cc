// Communicators of many members have a name each.
#include "watch/preload/members.h"

#include <gtest/gtest.h>

#include <climits>
#include <set>
#include <vector>

namespace lockstep::watch::preload {
namespace {

std::uint64_t HashOf(const std::vector<int>& members, int most = INT_MAX) {
  return HashMembers(static_cast<int>(members.size()), most,
                     [&](const int* here, int count, int* there) {
                       for (int each = 0; each < count; ++each) {
                         there[each] = members[static_cast<std::size_t>(here[each])];
                       }
                     });
}

TEST(HashMembers, EachMemberCounts) {
  for (const std::size_t size : {1, 63, 64, 65, 128, 1000}) {
    std::vector<int> members(size);
    std::iota(members.begin(), members.end(), 0);
    std::set<std::uint64_t> hashes = {HashOf(members)};
    EXPECT_TRUE(hashes.contains(HashOf(members)));
    for (int& member : members) {
      member += 5000;
      EXPECT_TRUE(hashes.insert(HashOf(members)).second) << size;
    }
  }
}

TEST(HashMembers, NotMoreAreLookedUpThanAskedFor) {
  EXPECT_EQ(HashOf({3, 1, 2}, 1), HashOf({3, 2, 1}, 1));
  EXPECT_NE(HashOf({3, 1, 2}, 1), HashOf({3, 1}, 1));
  EXPECT_NE(HashOf({3, 1, 2}, 2), HashOf({3, 2, 1}, 2));
}

}  // namespace
}  // namespace lockstep::watch::preload
