// Our declarations of NCCL's interface against its own header.
#include "core/comm/nccl/abi.h"

#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "gtest/gtest.h"

namespace lockstep::comm::nccl {
namespace {

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(NCCL_VERSION_CODE < 22803 || sizeof(Config) == sizeof(ncclConfig_t));

// Enumerators and pointers to incomplete types become what we call them by.
template <typename T>
using Plain = std::conditional_t<std::is_enum_v<T>, int, T>;

TEST(Abi, EnumeratorsHaveNcclsNumbers) {
  EXPECT_EQ(kSuccess, ncclSuccess);
  EXPECT_EQ(kUnhandledCudaError, ncclUnhandledCudaError);
  EXPECT_EQ(kSystemError, ncclSystemError);
  EXPECT_EQ(kInternalError, ncclInternalError);
  EXPECT_EQ(kInvalidArgument, ncclInvalidArgument);
  EXPECT_EQ(kInvalidUsage, ncclInvalidUsage);
  EXPECT_EQ(kRemoteError, ncclRemoteError);
  EXPECT_EQ(kInProgress, ncclInProgress);
  EXPECT_EQ(int{kI8}, ncclInt8);
  EXPECT_EQ(int{kU8}, ncclUint8);
  EXPECT_EQ(int{kI32}, ncclInt32);
  EXPECT_EQ(int{kI64}, ncclInt64);
  EXPECT_EQ(int{kF16}, ncclFloat16);
  EXPECT_EQ(int{kF32}, ncclFloat32);
  EXPECT_EQ(int{kF64}, ncclFloat64);
  EXPECT_EQ(int{kBf16}, ncclBfloat16);
#if NCCL_VERSION_CODE >= 22403
  EXPECT_EQ(int{kF8E4M3}, ncclFloat8e4m3);
  EXPECT_EQ(int{kF8E5M2}, ncclFloat8e5m2);
#endif
  EXPECT_EQ(int{kSum}, ncclSum);
  EXPECT_EQ(int{kProd}, ncclProd);
  EXPECT_EQ(int{kMax}, ncclMax);
  EXPECT_EQ(int{kMin}, ncclMin);
}

TEST(Abi, TheConfigurationHasNcclsLayout) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(static_cast<unsigned>(VersionCode(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)), theirs.version);
  EXPECT_EQ(offsetof(Config, blocking), offsetof(ncclConfig_t, blocking));
#if NCCL_VERSION_CODE >= 21701
  EXPECT_EQ(offsetof(Config, min_ctas), offsetof(ncclConfig_t, minCTAs));
  EXPECT_EQ(offsetof(Config, net_name), offsetof(ncclConfig_t, netName));
#endif
#if NCCL_VERSION_CODE >= 21801
  EXPECT_EQ(offsetof(Config, split_share), offsetof(ncclConfig_t, splitShare));
  EXPECT_EQ(kNoColor, NCCL_SPLIT_NOCOLOR);
#endif
#if NCCL_VERSION_CODE >= 22703
  EXPECT_EQ(offsetof(Config, comm_name), offsetof(ncclConfig_t, commName));
  EXPECT_EQ(offsetof(Config, nvls_ctas), offsetof(ncclConfig_t, nvlsCTAs));
  EXPECT_EQ(kShrinkAbort, NCCL_SHRINK_ABORT);
#endif
#if NCCL_VERSION_CODE >= 22803
  EXPECT_EQ(offsetof(Config, channels_per_net_peer), offsetof(ncclConfig_t, nChannelsPerNetPeer));
  EXPECT_EQ(offsetof(Config, nvlink_centric_sched), offsetof(ncclConfig_t, nvlinkCentricSched));
#endif
}

// Assigning NCCL's functions to ours through a cast of equal parameter lists: a parameter more or
// less does not compile. Types alone: no library of NCCL is linked.
template <typename R, typename... Theirs, typename... Ours>
constexpr bool SameShape(R (*)(Theirs...), Code (*)(Ours...)) {
  return sizeof...(Theirs) == sizeof...(Ours) && ((sizeof(Plain<Theirs>) == sizeof(Ours)) && ...);
}

TEST(Abi, CallsHaveNcclsParameters) {
  const Api api;
  EXPECT_TRUE(SameShape(decltype (&ncclCommInitRankConfig)(), api.CommInitRankConfig));
  EXPECT_TRUE(SameShape(decltype (&ncclAllReduce)(), api.AllReduce));
  EXPECT_TRUE(SameShape(decltype (&ncclBroadcast)(), api.Broadcast));
  EXPECT_TRUE(SameShape(decltype (&ncclReduce)(), api.Reduce));
  EXPECT_TRUE(SameShape(decltype (&ncclAllGather)(), api.AllGather));
  EXPECT_TRUE(SameShape(decltype (&ncclReduceScatter)(), api.ReduceScatter));
  EXPECT_TRUE(SameShape(decltype (&ncclSend)(), api.Send));
  EXPECT_TRUE(SameShape(decltype (&ncclRecv)(), api.Recv));
  EXPECT_TRUE(SameShape(decltype (&ncclCommGetAsyncError)(), api.CommGetAsyncError));
#if NCCL_VERSION_CODE >= 22807
  EXPECT_TRUE(SameShape(decltype (&ncclCommSplit)(), api.CommSplit));
  EXPECT_TRUE(SameShape(decltype (&ncclCommRegister)(), api.CommRegister));
  EXPECT_TRUE(SameShape(decltype (&ncclCommShrink)(), api.CommShrink));
  EXPECT_TRUE(SameShape(decltype (&ncclCommRevoke)(), api.CommRevoke));
#endif
}

}  // namespace
}  // namespace lockstep::comm::nccl
