// A session over a list of events, with a suite that only writes down what it is asked: in which
// order, what is stored under which name, and what remains when the coordinator is lost.
#include "session/session.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "core/coordinator/testing/fake_coordinator.h"
#include "gtest/gtest.h"
#include "results/store/store.h"
#include "results/store/testing/random_run.h"

namespace lockstep::session {
namespace {

namespace fs = std::filesystem;

// Saves after every event until there is none.
class WritingSuite final : public Suite {
 public:
  explicit WritingSuite(coordinator::FakeCoordinator& coordinator) : coordinator_(coordinator) {}

  Status conducted;
  Status reported;

  std::string name() const override { return "suite"; }
  Result<Plan> Prepare(const Launch&) override { return Plan{}; }
  coordinator::CoordinatorOptions agents() const override { return {}; }
  std::string output() const override { return ""; }
  results::store::Run NewRun() const override { return {}; }
  Status Conduct(coordinator::Coordinator& coordinator, results::store::Run& run,
                 Output& output) override {
    while (coordinator.Next(Deadline::AfterSeconds(1)).kind != coordinator::EventKind::kTimeout) {
      output.Save(coordinator, [&run] { return run; });
      coordinator_.Note("saved " + fs::path(output.file().path()).filename().string());
    }
    return conducted;
  }
  void Conclude(coordinator::Coordinator&, results::store::Run& run) override {
    coordinator_.Note("conclude");
    run.verdict = verdict::Verdict::kUnknown;
  }
  Status Report(const results::store::Run&, const results::store::RunFile& file) override {
    coordinator_.Note(fmt::format("report of {}{}", fs::path(file.path()).filename().string(),
                                  file.saved() ? "" : ", which is not there"));
    return reported;
  }
  ExitCode OnFailover(const coordinator::FailoverReport&) override { return ExitCode::kPass; }
  int Work(std::unique_ptr<worker::WorkerLink>) override { return 0; }

 private:
  coordinator::FakeCoordinator& coordinator_;
};

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // What was done, what was said, the files that are there, and the exit code or the error.
  std::string Run(coordinator::Script steps, Status conducted = OkStatus(),
                  Status reported = OkStatus()) {
    coordinator::FakeCoordinator coordinator(
        3, std::move(steps), [](const control::Message&) { return ""; }, {"a", "b", "c"});
    WritingSuite suite(coordinator);
    suite.conducted = std::move(conducted);
    suite.reported = std::move(reported);
    results::store::Run run = results::store::RunWithSamples(1, 3);
    Output output("suite", path_, run);
    testing::internal::CaptureStderr();
    const Result<ExitCode> code = Lead(suite, coordinator, run, output);
    std::string text;
    for (const std::string& command : coordinator.commands()) text += command + "\n";
    return text + Said() + Files() +
           (code.ok() ? fmt::format("exit code {}\n", static_cast<int>(*code))
                      : code.status().message() + "\n");
  }

  std::string Said() const {
    std::string said = testing::internal::GetCapturedStderr();
    for (std::size_t at; (at = said.find(folder_)) != std::string::npos;) {
      said.erase(at, folder_.size() + 1);
    }
    return said;
  }

  std::string Files() const {
    std::set<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_)) {
      names.insert(file.path().filename().string());
    }
    return fmt::format("files: {}\n", fmt::join(names, " "));
  }

  const std::string folder_ = testing::TempDir() + "/session_test";
  const std::string path_ = folder_ + "/run.h5";
};

using coordinator::EventKind;

TEST_F(SessionTest, FromTheCasesToTheExitCode) {
  EXPECT_EQ(Run(coordinator::Steps(coordinator::Of(EventKind::kQuiet, 0))),
            "replicate 1a2b3c4d 2026-11-21T10:44:25Z\n"
            "busy\n"
            "saved run.h5\n"
            "all clocks\n"
            "rest\n"
            "conclude\n"
            "report of run.h5\n"
            "suite: note: results go to run.h5\n"
            "files: run.h5\n"
            "exit code 3\n");
}

TEST_F(SessionTest, AnErrorLeavesWhatWasSaved) {
  EXPECT_EQ(
      Run(coordinator::Steps(coordinator::Of(EventKind::kQuiet, 0)), EnvironmentError("no memory")),
      "replicate 1a2b3c4d 2026-11-21T10:44:25Z\n"
      "busy\n"
      "saved run.h5\n"
      "suite: note: results go to run.h5\n"
      "files: run.h5\n"
      "no memory\n");
}

TEST_F(SessionTest, ThePartThatIsCutOffWritesBesideTheRun) {
  using coordinator::After;
  using verdict::Loss;
  EXPECT_EQ(Run(coordinator::Steps(coordinator::Of(EventKind::kQuiet, 0), After(0.1),
                                   coordinator::Lost(1, Loss::kCutOff), After(0.1),
                                   coordinator::Lost(2, Loss::kCutOff))),
            "replicate 1a2b3c4d 2026-11-21T10:44:25Z\n"
            "busy\n"
            "saved run.h5\n"
            "busy\n"
            "saved run.h5\n"
            "busy\n"
            "saved run-rank0-partial.h5\n"
            "all clocks\n"
            "rest\n"
            "conclude\n"
            "report of run-rank0-partial.h5\n"
            "suite: note: results go to run.h5\n"
            "suite: note: results now go to run-rank0-partial.h5\n"
            "files: run-rank0-partial.h5 run.h5\n"
            "exit code 3\n");
}

TEST_F(SessionTest, WhatCannotBeReportedIsStored) {
  EXPECT_EQ(Run({}, OkStatus(), EnvironmentError("--verdicts: no space")),
            "replicate 1a2b3c4d 2026-11-21T10:44:25Z\n"
            "all clocks\n"
            "rest\n"
            "conclude\n"
            "report of run.h5\n"
            "files: run.h5\n"
            "--verdicts: no space\n");
}

TEST_F(SessionTest, ASuccessorWritesUnderTheNameOfTheRunOnlyIfNobodyElseCan) {
  const auto take_over = [&](bool whole, const std::string& identity) {
    coordinator::FailoverReport failover;
    failover.successor = 1;
    failover.whole = whole;
    failover.replicated = {identity};
    results::store::Run run = results::store::RunWithSamples(1, 3);
    run.verdict = verdict::Verdict::kUnknown;
    run.summary_line = "two ranks are left";
    testing::internal::CaptureStderr();
    const ExitCode code = TakeOver(
        "suite", path_, failover, std::move(run),
        [](const results::store::Run&, const results::store::RunFile&) { return OkStatus(); });
    EXPECT_EQ(code, ExitCode::kInconclusive);
    return Said();
  };
  const std::string lost =
      "suite: the coordinator (rank 0's agent) is lost; rank 1's agent took its place: two ranks "
      "are left; what is left is in ";
  EXPECT_EQ(take_over(true, "aa 2026"), lost + "run.h5\n");
  EXPECT_EQ(results::store::ReadRun(path_).value().id, "aa");
  // The coordinator's own state of it stands there.
  EXPECT_EQ(take_over(true, "aa 2026"),
            "suite: note: what the coordinator had stored is in run-rank0-partial.h5\n" + lost +
                "run.h5\n");
  EXPECT_EQ(take_over(false, "aa 2026"), lost + "run-rank1-partial.h5\n");
  EXPECT_EQ(Files(), "files: run-rank0-partial.h5 run-rank1-partial.h5 run.h5\n");
}

}  // namespace
}  // namespace lockstep::session
