// Real processes: those that end, crash, stay or are stopped, and what they wrote.
#include "cli/trace_ddp/rank_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

#include "cli/trace_ddp/rank_history.h"
#include "core/base/process_stat.h"

namespace lockstep::cli::trace_ddp {
namespace {

constexpr double kLong = 600;

TEST(RankProcessesTest, EndsAndWordsAreKept) {
  const auto ended = RunRankProcesses(3, kLong, [](int rank, const RankSeat& seat) {
    seat.Write("rank " + std::to_string(rank));
    if (rank == 0) seat.Stay();
    if (rank == 1) std::abort();
    _exit(7);
  });
  ASSERT_TRUE(ended.ok()) << ended.status().message();
  EXPECT_EQ((*ended)[0].written, "rank 0");
  EXPECT_EQ((*ended)[1].signal, SIGABRT);
  EXPECT_EQ((*ended)[2].exit_code, 7);
  for (const EndedRank& rank : *ended) EXPECT_EQ(rank.state, 0);
}

// A stream's thread tells of its calls while the program's tells of the next.
TEST(RankProcessesTest, WhatThreadsWriteAtOnceIsAllKept) {
  constexpr int kRecords = 20'000;
  const auto ended = RunRankProcesses(1, kLong, [](int, const RankSeat& seat) {
    const auto write = [&seat](const char* record) {
      for (int i = 0; i < kRecords; ++i) seat.Write(record);
    };
    std::thread other(write, "ab");
    write("cd");
    other.join();
    _exit(0);
  });
  ASSERT_TRUE(ended.ok()) << ended.status().message();
  const std::string& written = (*ended)[0].written;
  ASSERT_EQ(written.size(), 4u * kRecords);
  for (std::size_t i = 0; i < written.size(); i += 2) {
    ASSERT_THAT(written.substr(i, 2), testing::AnyOf("ab", "cd")) << i;
  }
}

// Rank 0 writes until rank 1 is stopped, so that the patience cannot end before.
TEST(RankProcessesTest, ARankThatIsStoppedEndsWithThePatience) {
  void* const shared = mmap(nullptr, sizeof(std::atomic<pid_t>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& stopping = *new (shared) std::atomic<pid_t>(0);
  const auto is_stopped = [&stopping] {
    const auto stat = stopping > 0 ? StatOf(stopping) : std::nullopt;
    return stat && stat->state == 'T';
  };
  const auto ended = RunRankProcesses(2, 5, [&](int rank, const RankSeat& seat) {
    seat.Write("here");
    if (rank == 0) {
      for (; !is_stopped(); usleep(100'000)) seat.Write(".");
      seat.Stay();
    }
    stopping = getpid();
    raise(SIGSTOP);
    _exit(0);
  });
  munmap(shared, sizeof(std::atomic<pid_t>));
  ASSERT_TRUE(ended.ok()) << ended.status().message();
  EXPECT_EQ((*ended)[1].state, 'T');
  EXPECT_EQ((*ended)[1].written, "here");
}

TEST(RankProcessesTest, AHistoryIsReadAsItWasWritten) {
  const collective::Operation call = {.collective = collective::Collective::kBarrier};
  const auto ended = RunRankProcesses(1, kLong, [&](int, const RankSeat& seat) {
    HistoryWriter history(seat);
    history.OnPhase(journal::Phase::kBackward);
    history.OnSection({ddp::SectionKind::kIteration, 3});
    history.OnCollective(call, {journal::Purpose::kBucket, 1, 3});
    history.OnBegin();
    history.OnDone(false);
    TracedRank trace;
    trace.status = SystemFailed("raised");
    trace.tensors = {{"w", {1, 2}, std::nullopt}};
    history.OnEnd(trace);
    seat.Stay();
  });
  ASSERT_TRUE(ended.ok()) << ended.status().message();
  const RankHistory history = ReadHistory((*ended)[0]);
  ASSERT_EQ(history.moments.size(), 4u);
  EXPECT_TRUE(history.moments[2].inside);
  EXPECT_EQ(history.moments[2].calls, 1u);
  EXPECT_EQ(history.moments[2].phase, journal::Phase::kBackward);
  EXPECT_EQ(history.failed_ns, history.moments[3].ns);
  EXPECT_TRUE(history.end_ns);
  EXPECT_EQ(history.trace.status.message(), "raised");
  EXPECT_EQ(history.trace.tensors.at(0).values, (std::vector<double>{1, 2}));
  ASSERT_EQ(history.trace.sections.size(), 1u);
  EXPECT_EQ(history.trace.sections[0].section.index, 3);

  // Of a process that was killed while it wrote, what was whole counts.
  EndedRank cut = (*ended)[0];
  cut.written.pop_back();
  const RankHistory before = ReadHistory(cut);
  EXPECT_EQ(before.moments.size(), 4u);
  EXPECT_FALSE(before.end_ns);
}

}  // namespace
}  // namespace lockstep::cli::trace_ddp
