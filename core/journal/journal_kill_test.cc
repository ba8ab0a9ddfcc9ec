// Writers that are SIGKILLed at random moments leave a journal that can be read.
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "core/base/check.h"
#include "core/base/deadline.h"
#include "core/base/random.h"
#include "core/journal/journal.h"
#include "core/journal/testing/self_describing_event.h"
#include "gtest/gtest.h"

namespace lockstep::journal {
namespace {

constexpr char kWriter[] = "core/journal/endless_writer";

// Memory that a child process can map by its file descriptor.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes), fd_(memfd_create("journal_test", 0)) {
    LOCKSTEP_CHECK(fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes)) == 0, "memfd");
    // Read-only, as an agent that only watches would map it.
    memory_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_, 0);
    LOCKSTEP_CHECK(memory_ != MAP_FAILED, "mmap");
  }
  ~SharedMemory() {
    munmap(memory_, bytes_);
    close(fd_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int fd() const { return fd_; }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(memory_), bytes_};
  }

 private:
  std::size_t bytes_;
  int fd_;
  void* memory_;
};

// An endless_writer; killed at the latest when this goes.
class Victim {
 public:
  Victim(int fd, std::size_t capacity) {
    std::string program = kWriter, fd_text = std::to_string(fd);
    std::string capacity_text = std::to_string(capacity);
    char* arguments[] = {program.data(), fd_text.data(), capacity_text.data(), nullptr};
    const int error = posix_spawn(&pid_, kWriter, nullptr, nullptr, arguments, environ);
    LOCKSTEP_CHECK(error == 0, "posix_spawn of endless_writer");
  }
  ~Victim() { Kill(); }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  // Returns the wait status.
  int Kill() {
    if (pid_ == 0) return 0;
    int status = 0;
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
};

void SleepNs(std::int64_t ns) {
  const timespec time = {0, ns};
  nanosleep(&time, nullptr);
}

// The whole ring after a kill. Every event must be whole and the indices without a gap; at most the
// one slot that was being written may be lost. Returns true when one was.
bool ExpectWhole(const JournalReader& reader, std::size_t capacity) {
  const Journal journal = reader.Newest(capacity);
  EXPECT_FALSE(journal.events.empty());
  if (journal.events.empty()) return false;
  EXPECT_EQ(journal.events.front().index, journal.missed + 1);
  for (std::size_t i = 0; i < journal.events.size(); ++i) {
    EXPECT_EQ(journal.events[i].index, journal.missed + 1 + i);
    EXPECT_TRUE(IsWhole(journal.events[i])) << "torn event " << journal.events[i].index;
  }
  const std::uint64_t newest = journal.events.back().index;
  const std::size_t lost = std::min<std::uint64_t>(newest, capacity) - journal.events.size();
  EXPECT_LE(lost, 1u);
  const auto last = reader.Last();
  EXPECT_TRUE(last && last->index == newest);
  return lost == 1;
}

TEST(JournalKill, ThreeHundredKilledWritersLeaveNoTornEvent) {
  Random random(20);
  int interrupted = 0;
  std::uint64_t live_reads = 0;
  for (int round = 0; round < 300; ++round) {
    // A small ring is overwritten all the time; a large one may not even be full.
    const std::size_t capacity = round % 3 == 0 ? 4096 : 8;
    SharedMemory memory(JournalBytes(capacity));
    const JournalReader reader(memory.bytes(), capacity);
    Victim victim(memory.fd(), capacity);
    const Deadline deadline = Deadline::AfterSeconds(60);
    while (!reader.Last() && !deadline.Passed()) SleepNs(20'000);
    const Deadline moment = Deadline::AfterNs(static_cast<std::int64_t>(random.Below(1'500'000)));
    do {
      for (const JournalEvent& event : reader.Newest(capacity).events) {
        ASSERT_TRUE(IsWhole(event)) << "torn while written, event " << event.index;
        ++live_reads;
      }
    } while (!moment.Passed());
    const int status = victim.Kill();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the writer ended itself";
    if (ExpectWhole(reader, capacity)) ++interrupted;
    if (HasFailure()) FAIL() << "round " << round;
  }
  RecordProperty("kills_in_mid_append", interrupted);
  std::printf("kills in the middle of an append: %d, events read live: %llu\n", interrupted,
              static_cast<unsigned long long>(live_reads));
  EXPECT_GT(live_reads, 0u);
}

}  // namespace
}  // namespace lockstep::journal
