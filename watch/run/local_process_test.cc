// What is known of a process of this host by its number, and what is not.
#include "watch/run/local_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/base/file_text.h"
#include "core/base/process_stat.h"
#include "watch/run/testing/segment_file.h"

namespace lockstep::watch::run {
namespace {

// A segment as a process of that number would leave it.
class LocalProcessTest : public testing::Test {
 protected:
  LocalProcessTest() {
    header_ = MakeSegment(path_);
    header_->ready = 1;
    header_->pid = getpid();
    header_->started = StatOf(getpid())->started;
  }
  ~LocalProcessTest() override {
    munmap(header_, events::kSegmentBytes);
    unlink(path_.c_str());
    unlink(told_.c_str());
  }

  std::unique_ptr<LocalProcess> Found() {
    return std::make_unique<LocalProcess>(std::move(SegmentReader::Open(path_)).value(), lines_,
                                          endings_);
  }
  void Write(events::Phase phase, std::uint16_t thread) {
    events::Event event;
    event.phase = phase;
    event.call = events::Call::kSend;
    event.thread = thread;
    char* const bytes = reinterpret_cast<char*>(header_);
    *reinterpret_cast<events::Event*>(bytes + events::OffsetOf(*header_, header_->head++)) = event;
  }

  std::string path_ = testing::TempDir() + "local_process";
  events::Header* header_;
  stacks::SourceLines lines_;
  std::string told_ = testing::TempDir() + "endings";
  Endings endings_{told_};
};

TEST_F(LocalProcessTest, AnotherProcessMayHaveItsNumberByNow) {
  EXPECT_LT(Found()->Look(false).state, ProcessState::kStopped);
  header_->started += 1;
  const std::unique_ptr<LocalProcess> process = Found();
  EXPECT_EQ(process->Look(false).state, ProcessState::kGone);
  EXPECT_EQ(process->end_fd(), -1);
}

// A launcher tells also those that ended before: they did so by themselves.
TEST_F(LocalProcessTest, WhoEndedBeforeItWasToldDidSoItself) {
  const pid_t own = header_->pid;
  header_->group = own;
  const auto first = [&](const events::Ending& told) {
    std::ofstream(told_).write(reinterpret_cast<const char*>(&told), sizeof told);
    return Endings(told_).FirstOf(*header_);
  };
  EXPECT_EQ(first({7, own, 0}), 7u);
  EXPECT_EQ(first({7, -own, 0}), 7u);
  EXPECT_EQ(first({7, -1, 0}), 7u);
  EXPECT_EQ(first({7, own, own}), 0u);
  EXPECT_EQ(first({7, -own, own}), 0u);
  EXPECT_EQ(first({7, own + 1, 0}), 0u);
  header_->group = own - 1;  // whose leader ended before, and this one did not
  EXPECT_EQ(first({7, 1 - own, own - 1}), 7u);
}

TEST_F(LocalProcessTest, AnotherProcessIsNotKilled) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  header_->pid = child;
  header_->started = StatOf(child)->started + 1;
  Found()->Kill();
  kill(child, SIGTERM);  // pending signals of one process are delivered by their numbers: 9 first
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST_F(LocalProcessTest, OfAnotherNamespaceNothingIsKnown) {
  header_->pid_namespace = 1;
  testing::internal::CaptureStderr();
  const std::unique_ptr<LocalProcess> process = Found();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("is not judged"), std::string::npos);
  EXPECT_EQ(process->Look(false).state, ProcessState::kUnknown);
  EXPECT_EQ(process->Look(true).state, ProcessState::kUnknown);
  EXPECT_EQ(process->end_fd(), -1);
}

TEST_F(LocalProcessTest, WhetherItSleepsIsAskedOfTheThreadThatCalls) {
  std::atomic<bool> over = false;
  std::thread sleeper([&] {
    header_->callers[2] = events::CallerWord(2, gettid());
    over.wait(false);
  });
  std::string state;
  while (state != "S") {
    const std::string folder = "/proc/self/task/" + std::to_string(events::CallerOf(*header_, 2));
    const std::optional<ProcessStat> stat = ReadStat(TextOf(folder + "/stat"));
    state = stat ? std::string(1, stat->state) : "";
  }
  Write(events::Phase::kEnter, 2);
  Write(events::Phase::kEnterLeft, 3);
  const std::unique_ptr<LocalProcess> process = Found();
  process->Drain(100, [](std::span<const events::Event>) {});
  const ProcessFacts facts = process->Look(false);
  EXPECT_EQ(facts.state, ProcessState::kRuns);  // this thread looks
  ASSERT_EQ(facts.callers.size(), 1u);
  EXPECT_EQ(facts.callers[0].thread, 2);
  EXPECT_TRUE(facts.callers[0].sleeps);
  EXPECT_TRUE(facts.Waited(facts));
  Write(events::Phase::kEnter, events::kMainThreadNumber);
  process->Drain(100, [](std::span<const events::Event>) {});
  EXPECT_FALSE(process->Look(false).Waited(facts));  // the main thread runs
  // Another one has its place by now: nobody knows whether it sleeps.
  header_->callers[2] = events::CallerWord(2 + events::kMostCallers, gettid());
  EXPECT_FALSE(process->Look(false).callers[0].sleeps);
  over = true;
  over.notify_all();
  sleeper.join();
}

TEST(ProcessFacts, AThreadThatOnlyWantsAProcessorHasNotWaited) {
  ProcessFacts before, now;
  now.state = ProcessState::kSleeps;  // the main thread, which waits for the other one
  before.callers = {{2, 100, false}};
  now.callers = {{2, 100, false}};
  EXPECT_FALSE(now.Waited(before));
  now.callers[0].ran_ns += 20'000'000;
  EXPECT_TRUE(now.Waited(before));
  now.callers.push_back({3, 500'000'000, false});  // new in a call
  EXPECT_FALSE(now.Waited(before));
}

}  // namespace
}  // namespace lockstep::watch::run
