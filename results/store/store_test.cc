// Files that cannot be written, damaged files, foreign files, and files of every older schema. Some
// are forged with HDF5 and sealed again, as another writer would leave them.
#include "results/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <vector>

#include "core/base/random.h"
#include "results/store/seal.h"
#include "results/store/testing/random_run.h"

namespace lockstep::results::store {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) /
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  std::string Path(const std::string& name) const { return directory_ / name; }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t Files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }
  // The error of reading that file, checked to be one line that names it.
  std::string ReadError(const std::string& name) const {
    const auto run = ReadRun(Path(name));
    if (run.ok()) return "read without an error";
    EXPECT_EQ(ExitCodeOf(run.status().code()), ExitCode::kUsage);
    EXPECT_THAT(run.status().message(), HasSubstr(Path(name)));
    EXPECT_THAT(run.status().message(), HasSubstr("; "));
    EXPECT_THAT(run.status().message(), Not(HasSubstr("\n")));
    return run.status().message();
  }
  // Writes a run, changes it with HDF5 and seals it again, as another writer would have it.
  void Forge(const std::string& name, const std::function<void(hid_t)>& change) const {
    ASSERT_TRUE(WriteRun(RunWithSamples(4, 2), Path(name)).ok());
    const hid_t file = H5Fopen(Path(name).c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(file, 0);
    change(file);
    H5Fclose(file);
    std::string bytes = Read(name);
    const auto body = std::as_bytes(std::span(bytes)).subspan(kSealBytes);
    const auto seal = SealOf({body});
    std::copy(seal.begin(), seal.end(), bytes.begin());
    Write(name, bytes);
  }

  fs::path directory_;
};

TEST_F(StoreTest, DefaultPathSaysWhenAndWhat) {
  EXPECT_EQ(DefaultRunPath(RunWithSamples(0, 1), "results/runs"),
            "results/runs/20261121T104425Z-bench_allreduce-1a2b3c4d.h5");
  EXPECT_EQ(DefaultRunPath(RunWithSamples(0, 1), "/"),
            "/20261121T104425Z-bench_allreduce-1a2b3c4d.h5");
}

TEST_F(StoreTest, MissingParentsAreMadeAndNothingElseIsLeft) {
  ASSERT_TRUE(CheckWritable(Path("a/b/run.h5")).ok());
  EXPECT_EQ(Files(), 0u);
  ASSERT_TRUE(WriteRun(RunWithSamples(1, 2), Path("a/b/run.h5")).ok());
  directory_ /= "a/b";
  EXPECT_EQ(Files(), 1u);
}

TEST_F(StoreTest, AnOlderFileIsReplaced) {
  Write("run.h5", "older");
  ASSERT_TRUE(CheckWritable(Path("run.h5")).ok());
  EXPECT_EQ(Read("run.h5"), "older");
  ASSERT_TRUE(WriteRun(RunWithSamples(1, 2), Path("run.h5")).ok());
  EXPECT_TRUE(ReadRun(Path("run.h5")).ok());
}

TEST_F(StoreTest, WhatIsNoFileNameIsRefusedAndKept) {
  fs::create_directory(Path("folder"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  Write("file", "");
  for (const std::string& path : {std::string(), Path("folder"), Path("new/"), Path("pipe"),
                                  std::string("/dev/full"), std::string("/dev/null")}) {
    for (const Status& status : {CheckWritable(path), WriteRun(RunWithSamples(1, 2), path)}) {
      EXPECT_EQ(ExitCodeOf(status.code()), ExitCode::kUsage) << path;
      EXPECT_THAT(status.message(), HasSubstr("; name a file that ends in .h5"));
    }
  }
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
  EXPECT_EQ(Files(), 3u);
}

TEST_F(StoreTest, PlacesThatCannotBeWritten) {
  Write("file", "");
  for (const std::string& path : {Path("file/run.h5"), std::string("/proc/run.h5"),
                                  Path("file/a/run.h5"), std::string("/proc/a/run.h5")}) {
    for (const Status& status : {CheckWritable(path), WriteRun(RunWithSamples(1, 2), path)}) {
      EXPECT_EQ(ExitCodeOf(status.code()), ExitCode::kEnvironment) << path;
      EXPECT_THAT(status.message(), HasSubstr(path + ": cannot be written ("));
    }
  }
}

TEST_F(StoreTest, ALongNameIsWritten) {
  const std::string path = Path(std::string(252, 'n') + ".h5");
  EXPECT_FALSE(WriteRun(RunWithSamples(1, 2), path + "5").ok());
  EXPECT_TRUE(WriteRun(RunWithSamples(1, 2), path).ok());
  EXPECT_EQ(Files(), 1u);
}

// A disk that is full after `bytes`: the same path through the code as ENOSPC, and without
// SIGXFSZ blocked it would end the process.
TEST_F(StoreTest, AFullDiskLeavesTheOlderFileAndNoTemporary) {
  Write("run.h5", "older");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const rlim_t bytes : {0, 100, 70'000, 200'000}) {
    rlimit limit = {bytes, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const Status status = WriteRun(RunWithSamples(100'000, 2), Path("run.h5"));
    const Status check = CheckWritable(Path("run.h5"));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(ExitCodeOf(status.code()), ExitCode::kEnvironment);
    EXPECT_THAT(status.message(), HasSubstr("raise the file size limit"));
    EXPECT_EQ(check.ok(), bytes >= 65'536);
    EXPECT_EQ(Read("run.h5"), "older");
    EXPECT_EQ(Files(), 1u);
  }
  EXPECT_TRUE(WriteRun(RunWithSamples(100'000, 2), Path("run.h5")).ok());
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
}

TEST_F(StoreTest, FilesThatAreNoRun) {
  Write("empty.h5", "");
  Write("text.h5", "size,time\n8,1.5\n");
  fs::create_directory(Path("folder.h5"));
  ASSERT_EQ(mkfifo(Path("pipe.h5").c_str(), 0600), 0);
  H5Fclose(H5Fcreate(Path("foreign.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  EXPECT_THAT(ReadError("empty.h5"), HasSubstr("the file is empty"));
  EXPECT_THAT(ReadError("text.h5"), HasSubstr("not an HDF5 file of Lockstep"));
  EXPECT_THAT(ReadError("folder.h5"), HasSubstr("is a directory"));
  EXPECT_THAT(ReadError("pipe.h5"), HasSubstr("is no regular file"));
  EXPECT_THAT(ReadError("foreign.h5"), HasSubstr("an HDF5 file, but not of Lockstep"));
  EXPECT_THAT(ReadError("missing.h5"), HasSubstr("No such file"));
}

TEST_F(StoreTest, DamageIsNamed) {
  ASSERT_TRUE(WriteRun(RunWithSamples(10, 2), Path("run.h5")).ok());
  const std::string whole = Read("run.h5");
  Write("head.h5", whole.substr(0, 100));
  Write("line.h5", whole.substr(0, 30));
  Write("half.h5", whole.substr(0, whole.size() / 2));
  Write("longer.h5", whole + "x");
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  Write("flipped.h5", flipped);
  std::string unsealed = whole;
  unsealed.replace(whole.find("schema="), 7, "SCHEMA=");
  Write("unsealed.h5", unsealed);
  EXPECT_THAT(ReadError("head.h5"), HasSubstr("truncated: 100 of "));
  EXPECT_THAT(ReadError("line.h5"), HasSubstr("truncated to 30 bytes"));
  EXPECT_THAT(ReadError("half.h5"), HasSubstr("truncated: "));
  EXPECT_THAT(ReadError("longer.h5"), HasSubstr("altered: "));
  EXPECT_THAT(ReadError("flipped.h5"), HasSubstr("contents changed after it was written"));
  EXPECT_THAT(ReadError("unsealed.h5"), HasSubstr("its first line is damaged"));
}

TEST_F(StoreTest, ANewerSchemaIsNamed) {
  ASSERT_TRUE(WriteRun(RunWithSamples(10, 2), Path("run.h5")).ok());
  std::string bytes = Read("run.h5");
  bytes.replace(bytes.find("schema=4"), 8, "schema=5");
  Write("newer.h5", bytes);
  EXPECT_THAT(ReadError("newer.h5"), HasSubstr("of schema 5, newer than this program's 4"));
}

TEST_F(StoreTest, EveryMissingObjectIsNamed) {
  for (const std::string object :
       {"/environment", "/floors", "/plan", "/plan/text", "/summary", "/operations", "/wrong",
        "/cases", "/cases/0/samples", "/cases/0/samples/entry_ns", "/cases/0/samples/exit_ns",
        "/cases/0/samples/round", "/cases/0/samples/rank", "/history", "/verdicts",
        "/verdicts/outcomes", "/verdicts/findings", "/verdicts/trials", "/recovery"}) {
    Forge("forged.h5", [&](hid_t file) { H5Ldelete(file, object.c_str(), H5P_DEFAULT); });
    EXPECT_THAT(ReadError("forged.h5"), HasSubstr(object)) << object;
    EXPECT_THAT(ReadError("forged.h5"), HasSubstr("is missing"));
  }
  Forge("forged.h5", [&](hid_t file) { H5Adelete(file, "verdict"); });
  EXPECT_THAT(ReadError("forged.h5"), HasSubstr("attribute verdict of / is missing"));
}

TEST_F(StoreTest, WrongTypesAndShapesAreNamed) {
  Forge("forged.h5", [](hid_t file) {
    H5Ldelete(file, "/summary", H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "/summary", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  });
  EXPECT_THAT(ReadError("forged.h5"), HasSubstr("/summary"));
  Forge("forged.h5", [](hid_t file) {
    H5Ldelete(file, "/summary", H5P_DEFAULT);
    H5Lcreate_hard(file, "/wrong", file, "/summary", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_THAT(ReadError("forged.h5"), HasSubstr("column name of /summary is missing"));
  Forge("forged.h5", [](hid_t file) {
    H5Ldelete(file, "/cases/0/samples/round", H5P_DEFAULT);
    H5Lcreate_hard(file, "/cases/0/samples/rank", file, "/cases/0/samples/round", H5P_DEFAULT,
                   H5P_DEFAULT);
  });
  EXPECT_THAT(ReadError("forged.h5"), HasSubstr("has another shape than its axes"));
  Forge("forged.h5", [](hid_t file) {
    H5Adelete(file, "exit_code");
    const hid_t space = H5Screate(H5S_SCALAR);
    H5Aclose(H5Acreate2(file, "exit_code", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  });
  EXPECT_THAT(ReadError("forged.h5"), HasSubstr("attribute exit_code of / has another type"));
}

// A shape of 10^18 elements with no data behind it must not be believed.
TEST_F(StoreTest, AShapeWithoutDataIsNotAllocated) {
  Forge("forged.h5", [](hid_t file) {
    H5Ldelete(file, "/cases/0/samples/round", H5P_DEFAULT);
    const hsize_t dims = 1'000'000'000'000'000'000;
    const hsize_t chunk = 1;
    const hid_t space = H5Screate_simple(1, &dims, nullptr);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, 1, &chunk);
    H5Dclose(H5Dcreate2(file, "/cases/0/samples/round", H5T_STD_I32LE, space, H5P_DEFAULT,
                        properties, H5P_DEFAULT));
    H5Pclose(properties);
    H5Sclose(space);
  });
  EXPECT_THAT(ReadError("forged.h5"), HasSubstr("less data than its shape says"));
}

// Written by the program of that time; its five cases are those of
// results/report/testing/literal_run.cc.
TEST(Seal, IsTheSameHoweverTheBytesAreCut) {
  Random random(7);
  std::vector<std::byte> body(1000);
  for (std::byte& byte : body) byte = static_cast<std::byte>(random.Below(256));
  const auto whole = SealOf({body});
  for (int i = 0; i < 200; ++i) {
    std::vector<std::span<const std::byte>> pieces;
    for (std::span<const std::byte> left = body; !left.empty();) {
      const std::size_t bytes = std::min(left.size(), random.Below(i % 2 == 0 ? 40 : 400));
      pieces.push_back(left.first(bytes));
      left = left.subspan(bytes);
    }
    EXPECT_EQ(SealOf(pieces), whole);
  }
  body[500] ^= std::byte{1};
  EXPECT_NE(SealOf({body}), whole);
}

TEST(Schema, AFileOfSchema1IsStillRead) {
  const auto read = ReadRun("results/store/testdata/schema1.h5");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->schema_version, 1);
  ASSERT_EQ(read->cases.size(), 5u);
  EXPECT_EQ(read->cases[0].samples.iterations(), 5);
  EXPECT_TRUE(read->cases[0].parts.empty());
  EXPECT_EQ(read->recommendation, "");
}

// StepsRun of results/report/testing/literal_run.cc.
TEST(Schema, AFileOfSchema2IsStillRead) {
  const auto read = ReadRun("results/store/testdata/schema2.h5");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->schema_version, 2);
  EXPECT_EQ(read->effects.size(), 1u);
  ASSERT_FALSE(read->cases.empty());
  EXPECT_FALSE(read->cases[0].parts.empty());
  EXPECT_FALSE(read->cases[0].trial.has_value());
}

// Two simulated cases of stress.
TEST(Schema, AFileOfSchema3IsStillRead) {
  const auto read = ReadRun("results/store/testdata/schema3.h5");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->schema_version, 3);
  ASSERT_EQ(read->cases.size(), 2u);
  EXPECT_TRUE(read->cases[0].trial.has_value());
  EXPECT_TRUE(read->cases[0].recoveries.empty());
}

// A simulated case of stress, from before findings had a headline, and files the version.
TEST(Schema, WhereAFindingHasNoHeadlineItIsThatOfTheMessage) {
  const auto read = ReadRun("results/store/testdata/schema4_before_headlines.h5");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->schema_version, 4);
  ASSERT_EQ(read->cases.size(), 1u);
  ASSERT_EQ(read->cases[0].judgement.findings.size(), 1u);
  const verdict::Finding& finding = read->cases[0].judgement.findings[0];
  EXPECT_EQ(finding.headline, verdict::Headline::Of(finding.message));
  EXPECT_EQ(finding.headline.text().find("rank 1 exited with code 0 in broadcast 10 "), 0u);
  ASSERT_FALSE(read->evidence.empty());
  EXPECT_EQ(read->evidence.front().known.host, "");
  EXPECT_EQ(TextOf(read->lockstep), "");
}

TEST_F(StoreTest, AFileOfTodayWithoutAVersionIsRead) {
  Forge("forged.h5", [](hid_t file) {
    for (const char* name : {"lockstep_version", "lockstep_commit", "lockstep_modified"}) {
      EXPECT_GE(H5Adelete(file, name), 0) << name;
    }
  });
  const auto read = ReadRun(Path("forged.h5"));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->lockstep, Version());
}

}  // namespace
}  // namespace lockstep::results::store
