// Runs whose place is taken, or gone when they end.
#include "results/store/run_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "results/store/store.h"
#include "results/store/testing/random_run.h"

namespace lockstep::results::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunFileTest : public testing::Test {
 protected:
  RunFileTest()
      : root_(fs::path(testing::TempDir()) / "run_file_test"), before_(fs::current_path()) {
    fs::remove_all(root_);
    for (const char* folder : {"place", "tmp", "here"}) fs::create_directories(root_ / folder);
    setenv("TMPDIR", Path("tmp").c_str(), 1);
    fs::current_path(root_ / "here");
    run_ = RandomRun(7);
    run_.id = "1a2b3c4d";
    run_.exit_code = 0;
  }
  ~RunFileTest() override { fs::current_path(before_); }

  std::string Path(const std::string& name) const { return (root_ / name).string(); }
  // As when a disk breaks: the folder is no folder any more.
  void Break(const std::string& folder) {
    fs::remove_all(Path(folder));
    std::ofstream(Path(folder)) << "x";
  }

  fs::path root_, before_;
  store::Run run_;
};

TEST_F(RunFileTest, WhatIsKnownSoFarIsReplacedByAllOfIt) {
  RunFile file(Path("place/run.h5"));
  EXPECT_TRUE(file.Check().ok());
  run_.complete = false;
  file.Save(run_);
  EXPECT_FALSE(ReadRun(Path("place/run.h5"))->complete);
  run_.complete = true;
  EXPECT_TRUE(file.Store(run_).ok());
  EXPECT_TRUE(ReadRun(Path("place/run.h5"))->complete);
  EXPECT_EQ(run_.exit_code, 0);
}

TEST_F(RunFileTest, AFileThatIsThereIsRefusedBeforeAnythingIsMeasured) {
  RunFile first(Path("place/run.h5"));
  EXPECT_TRUE(first.Store(run_).ok());
  const Status refused = RunFile(Path("place/run.h5")).Check();
  EXPECT_EQ(ExitCodeOf(refused.code()), ExitCode::kUsage);
  EXPECT_THAT(refused.message(), HasSubstr("run.h5 exists"));
}

TEST_F(RunFileTest, WhatALinkWillLeadToIsWrittenAndTheLinkStays) {
  fs::create_symlink("later/run.h5", Path("place/link.h5"));
  RunFile file(Path("place/link.h5"));
  EXPECT_TRUE(file.Check().ok());
  file.Save(run_);
  EXPECT_TRUE(file.Store(run_).ok());
  EXPECT_EQ(run_.exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(Path("place/link.h5")));
  EXPECT_EQ(ReadRun(Path("place/later/run.h5"))->id, run_.id);
  EXPECT_FALSE(RunFile(Path("place/link.h5")).Check().ok()) << "it is there now";
}

TEST_F(RunFileTest, OfTwoThatStartTogetherTheSecondIsNamedApart) {
  RunFile one(Path("place/run.h5")), other(Path("place/run.h5"));
  EXPECT_TRUE(one.Check().ok());
  EXPECT_TRUE(other.Check().ok());
  store::Run of_other = run_;
  of_other.id = "ffffffff";
  EXPECT_TRUE(one.Store(run_).ok());
  const Status stored = other.Store(of_other);
  EXPECT_EQ(ExitCodeOf(stored.code()), ExitCode::kEnvironment);
  EXPECT_THAT(stored.message(), HasSubstr("The run is in " + Path("place/run-ffffffff.h5")));
  EXPECT_EQ(ReadRun(Path("place/run.h5"))->id, "1a2b3c4d");
  EXPECT_EQ(ReadRun(Path("place/run-ffffffff.h5"))->id, "ffffffff");
}

// The coordinator's file has its own samples, which a successor never had.
TEST_F(RunFileTest, WhoGoesOnWithARunKeepsItsOlderState) {
  EXPECT_TRUE(RunFile(Path("place/run.h5")).Store(run_).ok());
  store::Run successor = RandomRun(8);
  Identify(IdentityOf(run_), successor);
  EXPECT_EQ(successor.started_at, run_.started_at);
  RunFile file(Path("place/run.h5"));
  EXPECT_TRUE(file.Store(successor).ok());
  EXPECT_EQ(ReadRun(Path("place/run.h5"))->plan_hash, successor.plan_hash);
  EXPECT_EQ(file.older(), Path("place/run-rank0-partial.h5"));
  EXPECT_EQ(ReadRun(file.older())->plan_hash, run_.plan_hash);
  EXPECT_TRUE(file.Store(successor).ok()) << "its own it replaces";
  EXPECT_EQ(ReadRun(file.older())->plan_hash, run_.plan_hash);
  // … also where that had to be named apart, and where the usual name is taken.
  store::Run other = run_;
  other.id = "ffffffff";
  std::ofstream(Path("place/run-ffffffff-rank0-partial.h5")) << "of somebody else";
  for (const std::uint64_t seed : {3, 4}) {
    Identify(IdentityOf(other), successor = RandomRun(seed));
    RunFile apart(Path("place/run.h5"));
    EXPECT_FALSE(apart.Store(successor).ok());
    EXPECT_EQ(ReadRun(Path("place/run-ffffffff.h5"))->plan_hash, successor.plan_hash);
    if (seed == 3) continue;
    EXPECT_EQ(apart.older(), Path("place/run-ffffffff-rank0-partial-ffffffff.h5"));
    EXPECT_EQ(ReadRun(apart.older())->plan_hash, RandomRun(3).plan_hash);
  }
}

TEST_F(RunFileTest, APlaceThatBreaksIsLeftAndTheExitCodeInTheFileIsTrue) {
  RunFile file(Path("place/run.h5"));
  EXPECT_TRUE(file.Check().ok());
  Break("place");
  const Status stored = file.Store(run_);
  EXPECT_EQ(ExitCodeOf(stored.code()), ExitCode::kEnvironment);
  EXPECT_THAT(stored.message(), HasSubstr("The run is in " + Path("tmp/run-1a2b3c4d.h5")));
  EXPECT_EQ(file.path(), Path("tmp/run-1a2b3c4d.h5"));
  EXPECT_EQ(run_.exit_code, 4);
  EXPECT_EQ(ReadRun(file.path())->exit_code, 4);
}

// Without privileges a user namespace gives the right to mount.
bool MountSmallDisk(const std::string& folder) {
  const std::string user = std::to_string(geteuid()), map = user + " " + user + " 1";
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/uid_map") << map;
  }
  return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("small", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

// All of it, to the last byte.
void Fill(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  while (file.write("x", 1).flush()) {
  }
}

TEST_F(RunFileTest, ADiskThatFillsUpMeanwhileIsLeft) {
  if (!MountSmallDisk(Path("place"))) GTEST_SKIP() << "mounts are not permitted here";
  RunFile file(Path("place/run.h5"));
  EXPECT_TRUE(file.Check().ok());
  file.Save(run_);
  EXPECT_EQ(file.path(), Path("place/run.h5"));
  Fill(Path("place/of_others"));
  const Status stored = file.Store(run_);
  EXPECT_EQ(ExitCodeOf(stored.code()), ExitCode::kEnvironment);
  EXPECT_THAT(stored.message(), HasSubstr("No space left on device"));
  EXPECT_THAT(stored.message(), HasSubstr("The run is in " + Path("tmp/run-1a2b3c4d.h5")));
  EXPECT_EQ(ReadRun(Path("tmp/run-1a2b3c4d.h5"))->exit_code, 4);
  EXPECT_FALSE(fs::exists(Path("place/run.h5")));
  EXPECT_EQ(umount(Path("place").c_str()), 0);
}

TEST_F(RunFileTest, TheCurrentFolderIsTheLastPlace) {
  RunFile file(Path("place/run.h5"));
  Break("place");
  Break("tmp");
  EXPECT_THAT(file.Store(run_).message(), HasSubstr("is in " + Path("here/run-1a2b3c4d.h5")));
}

TEST_F(RunFileTest, WhereNothingCanBeWrittenAllPlacesAreNamed) {
  RunFile file(Path("place/run.h5"));
  Break("place");
  Break("tmp");
  fs::remove_all(Path("here"));
  const Status stored = file.Store(run_);
  EXPECT_EQ(ExitCodeOf(stored.code()), ExitCode::kEnvironment);
  EXPECT_THAT(stored.message(), HasSubstr("Nor could it be written to "));
  EXPECT_FALSE(file.saved());
}

TEST_F(RunFileTest, WhatMovedOnceStaysWhereItIs) {
  RunFile file(Path("place/run.h5"));
  Break("place");
  file.Save(run_);
  ASSERT_TRUE(file.saved());
  run_.exit_code = 0;
  const Status stored = file.Store(run_);
  EXPECT_THAT(stored.message(), HasSubstr("The run is in " + Path("tmp/run-1a2b3c4d.h5")));
  EXPECT_EQ(ReadRun(file.path())->exit_code, 4);
}

}  // namespace
}  // namespace lockstep::results::store
