// The declarations in nccl_calls.h, held against the installed nccl.h.
#include "watch/preload/nccl_calls.h"

#include <gtest/gtest.h>
#include <nccl.h>

#include <type_traits>

namespace lockstep::watch::preload {
namespace {

template <typename T>
constexpr bool kHandle = std::is_pointer_v<T> || std::is_same_v<T, void*>;

// Enumerators are int here, and all handles are pointers.
template <typename Theirs, typename Ours>
constexpr bool Same() {
  if constexpr (std::is_enum_v<Theirs>) return std::is_same_v<Ours, int>;
  if constexpr (std::is_pointer_v<Theirs>) return std::is_pointer_v<Ours>;
  if constexpr (std::is_class_v<Theirs>) return sizeof(Theirs) == sizeof(Ours);
  return std::is_same_v<Theirs, Ours>;
}

template <typename R, typename... Theirs, typename... Ours>
constexpr bool SameShape(R (*)(Theirs...), int (*)(Ours...)) {
  if constexpr (sizeof...(Theirs) != sizeof...(Ours)) {
    return false;
  } else {
    return (Same<Theirs, Ours>() && ...);
  }
}

// What this header does not declare yet counts as the same.
#define LOCKSTEP_NCCL_CHECK(NAME, PARAMS, ...)                                             \
  TEST(NcclCalls, NAME) {                                                                  \
    EXPECT_TRUE(SameShape(decltype (&nccl##NAME)(), static_cast<int(*) PARAMS>(nullptr))); \
  }

#if NCCL_VERSION_CODE >= 22807
LOCKSTEP_NCCL_COLLECTIVES(LOCKSTEP_NCCL_CHECK)
LOCKSTEP_NCCL_MESSAGES(LOCKSTEP_NCCL_CHECK)
LOCKSTEP_NCCL_OTHERS(LOCKSTEP_NCCL_CHECK)
#endif

TEST(NcclCalls, Numbers) {
  EXPECT_EQ(kNcclSuccess, ncclSuccess);
  EXPECT_EQ(kNcclInternalError, ncclInternalError);
  EXPECT_EQ(kNcclInProgress, ncclInProgress);
  EXPECT_EQ(kNcclFirstOwnOp, ncclNumOps);
  EXPECT_EQ(sizeof(NcclUniqueId), sizeof(ncclUniqueId));
#if NCCL_VERSION_CODE >= 22703
  EXPECT_EQ(kNcclShrinkAbort, NCCL_SHRINK_ABORT);
#endif
}

TEST(NcclCalls, SizesOfTypes) {
  for (const ncclDataType_t type : {ncclInt8, ncclUint8}) EXPECT_EQ(NcclBytesOf(type), 1);
  for (const ncclDataType_t type : {ncclFloat16, ncclBfloat16}) EXPECT_EQ(NcclBytesOf(type), 2);
  for (const ncclDataType_t type : {ncclInt32, ncclUint32, ncclFloat32}) {
    EXPECT_EQ(NcclBytesOf(type), 4);
  }
  for (const ncclDataType_t type : {ncclInt64, ncclUint64, ncclFloat64}) {
    EXPECT_EQ(NcclBytesOf(type), 8);
  }
  EXPECT_EQ(NcclBytesOf(12345), 0);
}

}  // namespace
}  // namespace lockstep::watch::preload
