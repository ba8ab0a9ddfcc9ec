// mpi_abi.h, held against the mpi.h that this is compiled with: Open MPI's or MPICH's.
#include "watch/preload/mpi_abi.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mpi.h>

namespace lockstep::watch::preload {

Abi abi;

namespace {

#if defined(MPICH_VERSION)
constexpr const Abi& kInstalled = kMpich;
std::uint64_t Named(const char*, std::uint32_t mpich) { return mpich; }
#else
constexpr const Abi& kInstalled = kOpenMpi;
std::uint64_t Named(const char* open_mpi, std::uint32_t) {
  return reinterpret_cast<std::uint64_t>(dlsym(RTLD_DEFAULT, open_mpi));
}
#endif

template <typename Vendors>
std::uint64_t Bits(Vendors handle) {
  Handle ours;
  std::memcpy(&ours.word, &handle, sizeof handle);
  return ours.Bits();
}

class MpiAbi : public testing::Test {
 protected:
  MpiAbi() { abi = kInstalled; }
};

TEST_F(MpiAbi, HandlesAreTheLibrarysOwn) {
#define LOCKSTEP_CHECK(field, name, open_mpi, mpich) EXPECT_EQ(Bits(name), Named(#open_mpi, mpich));
  LOCKSTEP_MPI_HANDLES(LOCKSTEP_CHECK)
  LOCKSTEP_MPI_TYPES(LOCKSTEP_CHECK)
#undef LOCKSTEP_CHECK
#define LOCKSTEP_CHECK(name, open_mpi, mpich) EXPECT_EQ(Bits(name), Named(#open_mpi, mpich));
  LOCKSTEP_MPI_OPERATORS(LOCKSTEP_CHECK)
#undef LOCKSTEP_CHECK
}

TEST_F(MpiAbi, HandlesInMemory) {
  EXPECT_EQ(sizeof(MPI_Comm), abi.handle_bytes);
  EXPECT_EQ(sizeof(MPI_Datatype), abi.handle_bytes);
  EXPECT_EQ(sizeof(MPI_Group), abi.handle_bytes);
  EXPECT_EQ(sizeof(MPI_Op), abi.handle_bytes);
  EXPECT_EQ(sizeof(MPI_Request), abi.handle_bytes);
  EXPECT_EQ(sizeof(MPI_Win), abi.handle_bytes);
  EXPECT_EQ(sizeof(MPI_File), sizeof(FileHandle));
  EXPECT_EQ(sizeof(MPI_Aint), sizeof(Aint));
  EXPECT_EQ(sizeof(MPI_Offset), sizeof(Offset));
  const MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF, MPI_COMM_NULL};
  const Handles handles = {comms};
  EXPECT_EQ((*handles).Bits(), Bits(MPI_COMM_WORLD));
  EXPECT_EQ(handles[1].Bits(), Bits(MPI_COMM_SELF));
  EXPECT_EQ((handles + 1)[1].Bits(), Bits(MPI_COMM_NULL));
}

TEST_F(MpiAbi, Statuses) {
  EXPECT_EQ(sizeof(MPI_Status), abi.status_bytes);
  EXPECT_LE(sizeof(MPI_Status), sizeof(OwnStatus));
  EXPECT_LE(alignof(MPI_Status), alignof(OwnStatus));
  MPI_Status statuses[2] = {};
  statuses[0].MPI_SOURCE = 3;
  statuses[0].MPI_TAG = 4;
  statuses[1].MPI_SOURCE = 5;
  statuses[1].MPI_TAG = 6;
  statuses[1].MPI_ERROR = 7;
  const Statuses ours = {statuses};
  EXPECT_EQ(ours.Source(), 3);
  EXPECT_EQ(ours.Tag(), 4);
  EXPECT_EQ((ours + 1).Source(), 5);
  EXPECT_EQ((ours + 1).Tag(), 6);
  EXPECT_EQ((ours + 1).Error(), 7);
  EXPECT_FALSE(ours.Ignored());
  EXPECT_TRUE(Statuses{MPI_STATUS_IGNORE}.Ignored());
  EXPECT_TRUE(Statuses{MPI_STATUSES_IGNORE}.Ignored());
}

TEST_F(MpiAbi, Constants) {
  EXPECT_EQ(MPI_ANY_SOURCE, abi.any_source);
  EXPECT_EQ(MPI_PROC_NULL, abi.proc_null);
  EXPECT_EQ(MPI_CART, abi.cart);
  EXPECT_EQ(MPI_GRAPH, abi.graph);
  EXPECT_EQ(MPI_LOCK_EXCLUSIVE, abi.lock_exclusive);
  EXPECT_EQ(MPI_DIST_GRAPH, kMpiDistGraph);
  EXPECT_EQ(MPI_ERR_TRUNCATE, abi.error_truncate);
  EXPECT_EQ(MPI_ERR_IN_STATUS, abi.error_in_status);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(MPI_IN_PLACE), abi.in_place);
  EXPECT_EQ(MPI_SUCCESS, kMpiSuccess);
  EXPECT_NE(MPI_SUCCESS, kMpiErrOther);
  EXPECT_EQ(MPI_ANY_TAG, kMpiAnyTag);
  EXPECT_EQ(MPI_UNDEFINED, kMpiUndefined);
  EXPECT_EQ(MPI_THREAD_MULTIPLE, kMpiThreadMultiple);
}

}  // namespace
}  // namespace lockstep::watch::preload
