// Builds of the stand-in library pose as seven versions of NCCL, from 2.14 on. Where a real NCCL is
// installed, it is loaded too, without a GPU.
#include "core/comm/nccl/library.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "core/comm/nccl/connection.h"
#include "core/comm/nccl/debug_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::comm::nccl {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Fake(const std::string& version) {
  return "core/comm/nccl/testing/libfake_nccl_" + version + ".so";
}

struct Version {
  std::string code;
  std::string text;
  int features;  // of split, register, shrink, revoke: how many it has
  std::size_t config_bytes;
};
void PrintTo(const Version& version, std::ostream* out) { *out << version.text; }

class Versions : public testing::TestWithParam<Version> {};
TEST_P(Versions, HaveWhatTheyReport) {
  const auto library = Library::Open(Fake(GetParam().code));
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_EQ((*library)->VersionText(), GetParam().text);
  EXPECT_TRUE((*library)->stand_in());
  int has = 0;
  for (const Feature feature :
       {Feature::kSplit, Feature::kRegister, Feature::kShrink, Feature::kRevoke}) {
    const Status status = (*library)->Has(feature);
    if (status.ok()) ++has;
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kUnsupported);
  }
  EXPECT_EQ(has, GetParam().features);
  EXPECT_EQ((*library)->api().CommRevoke != nullptr, GetParam().features == 4);
  const Config config = (*library)->NewConfig();
  EXPECT_EQ(config.size, GetParam().config_bytes);
  EXPECT_EQ(config.blocking, 0);
  EXPECT_LE(static_cast<int>(config.version), (*library)->version());
}
INSTANTIATE_TEST_SUITE_P(
    Nccl, Versions,
    testing::Values(Version{"21403", "2.14.3", 0, 24}, Version{"21801", "2.18.1", 1, 48},
                    Version{"22203", "2.22.3", 2, 48}, Version{"22703", "2.27.3", 3, 72},
                    Version{"22809", "2.28.9", 4, 80}, Version{"23003", "2.30.3", 4, 80},
                    Version{"23102", "2.31.2", 4, 80}));

// What NCCL's source says of the version, so that nobody learns it from an error in a run.
TEST(Float8, NeedsTheVersionAndTheGpu) {
  const collective::Operation sum{.type = collective::DataType::kF8E4M3, .count = 1};
  const collective::Operation copy{.collective = collective::Collective::kAllGather,
                                   .type = collective::DataType::kF8E5M2,
                                   .count = 1};
  const collective::Operation message{.collective = collective::Collective::kSend,
                                      .type = collective::DataType::kF8E5M2,
                                      .count = 1};
  const auto old = Library::Open(Fake("22203")).value();
  EXPECT_EQ(old->Takes(message, 90).code(), StatusCode::kUnsupported);
  EXPECT_THAT(old->Takes(sum, 90).message(),
              AllOf(HasSubstr("f8e4m3 came with NCCL 2.24.3"), HasSubstr("is 2.22.3")));
  EXPECT_TRUE(old->Takes({.type = collective::DataType::kU8}, 70).ok());
  const auto first = Library::Open(Fake("22703")).value();
  const auto later = Library::Open(Fake("22809")).value();
  for (const auto& library : {first, later}) {
    EXPECT_TRUE(library->Takes(sum, 90).ok());
    EXPECT_TRUE(library->Takes(sum, 0).ok());
    EXPECT_EQ(library->Takes(sum, 80).code(), StatusCode::kUnsupported);
    EXPECT_TRUE(library->Takes(message, 80).ok());
  }
  EXPECT_THAT(later->Takes(sum, 89).message(), HasSubstr("and this one has 8.9"));
  EXPECT_EQ(first->Takes(copy, 80).code(), StatusCode::kUnsupported);
  EXPECT_TRUE(later->Takes(copy, 80).ok());
}

void ExpectRefused(const std::string& path, const std::string& why) {
  const auto library = Library::Open(path);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), StatusCode::kEnvironment);
  EXPECT_THAT(library.status().message(), HasSubstr(why));
  EXPECT_THAT(library.status().message(), HasSubstr("--nccl-library"));
  EXPECT_THAT(library.status().message(), Not(HasSubstr("\n")));
}

TEST(Library, ThatCannotBeUsedIsRefusedInOneLine) {
  ExpectRefused("/nonexistent/libnccl.so.2", "No such file");
  ExpectRefused("libc.so.6", "has no ncclGetVersion, so it is not NCCL");
  ExpectRefused(Fake("21304"), "is NCCL 2.13.4");
  ExpectRefused(Fake("incomplete"), "says that it is NCCL 2.28.9, which has ncclCommSplit");
  setenv("LOCKSTEP_FAKE_NCCL", "ncclGetVersion:error=3", 1);
  ExpectRefused(Fake("22809"), "does not tell its version");
  unsetenv("LOCKSTEP_FAKE_NCCL");
}

TEST(DebugLog, ItsEndIsPartOfAnError) {
  const std::string path = CaptureDebugLog();
  // It has no name that could stay behind, or that somebody else could know.
  struct stat facts {};
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_nlink, 0u);
  EXPECT_STREQ(std::getenv("NCCL_DEBUG_FILE"), path.c_str());
  EXPECT_STREQ(std::getenv("NCCL_DEBUG"), "WARN");
  EXPECT_EQ(DebugLogEnd(), "");
  std::ofstream(path) << "NCCL version 2.28.9\none\ntwo\nthree\nfour\n";
  EXPECT_EQ(DebugLogEnd(), "NCCL's log ends: two | three | four");
}

// The real one, where this machine has it: it loads without a GPU, and says in one line that it
// cannot work.
TEST(InstalledLibrary, LoadsAndTellsWhatIsMissing) {
  const char* given = std::getenv("LOCKSTEP_NCCL_LIBRARY");
  auto library = Library::Open(given == nullptr ? "" : given);
  for (const char* path :
       {"/usr/local/cuda/lib/libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"}) {
    if (!library.ok()) library = Library::Open(path);
  }
  if (!library.ok()) GTEST_SKIP() << library.status().message();
  EXPECT_FALSE((*library)->stand_in());
  EXPECT_GE((*library)->version(), kOldestVersion);
  UniqueId id{};
  const Code code = (*library)->api().GetUniqueId(&id);
  ASSERT_EQ(code, kSuccess) << (*library)->Describe("ncclGetUniqueId", code);
  Terms terms;
  terms.library = *library;
  const auto connection = Connection::Connect(terms, id, 0, 1, Deadline::AfterSeconds(20));
  if (connection.ok()) GTEST_SKIP() << "this machine has a GPU that NCCL can use";
  EXPECT_EQ(connection.status().code(), StatusCode::kSystemFailed);
  EXPECT_THAT(connection.status().message(), HasSubstr("nccl: ncclCommInitRankConfig: unhandled"));
  EXPECT_THAT(connection.status().message(), Not(HasSubstr("\n")));
  RecordProperty("message", connection.status().message());
  printf("%s\n%s\n", (*library)->path().c_str(), connection.status().message().c_str());
}

}  // namespace
}  // namespace lockstep::comm::nccl
