#include "core/comm/backends.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep::comm {
namespace {

TEST(Backends, EachIsFoundByItsNameAndSaysWhatItIs) {
  ASSERT_FALSE(Backends().empty());
  for (const Backend& backend : Backends()) {
    const auto found = FindBackend("--backend", backend.name);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, &backend);
    EXPECT_EQ(backend.capabilities().backend, backend.name);
    EXPECT_FALSE(backend.version().empty());
    EXPECT_TRUE(backend.capabilities().supports(collective::Operation()).ok());
    EXPECT_EQ(backend.uses_launcher_mpi, backend.name == "mpi");
    EXPECT_EQ(backend.capabilities().host_moves, backend.name == "mpi" || backend.name == "gloo");
  }
}

TEST(Backends, OthersAreRefusedInOneLineThatNamesTheChoices) {
  for (const std::string name : {"nvshmem", "", "MPI", "sim"}) {
    const auto found = FindBackend("--backend", name);
    ASSERT_FALSE(found.ok());
    const bool known = name == "sim";
    EXPECT_EQ(found.status().code(), known ? StatusCode::kUnsupported : StatusCode::kInvalidInput);
    const std::string& message = found.status().message();
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_NE(message.find("--backend"), std::string::npos);
    for (const Backend& backend : Backends()) {
      EXPECT_NE(message.find(backend.name), std::string::npos) << message;
    }
  }
}

TEST(Backends, NullConnects) {
  const auto null = FindBackend("--backend", "null");
  ASSERT_TRUE(null.ok());
  ConnectRequest request;
  request.rank = 1;
  request.size = 2;
  const auto communicator = (*null)->connect(request, Deadline::AfterSeconds(1));
  ASSERT_TRUE(communicator.ok());
  EXPECT_EQ((*communicator)->rank(), 1);
  request.rank = 2;
  EXPECT_FALSE((*null)->connect(request, Deadline::AfterSeconds(1)).ok());
}

}  // namespace
}  // namespace lockstep::comm
