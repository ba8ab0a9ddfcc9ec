// Each fault bites a process of ours, heals, and leaves it as it was; none outlives who applied it.
#include "core/agent/agent_faults.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/control/private_shm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::agent {
namespace {

using ::testing::HasSubstr;
using Kind = control::AgentFault::Kind;

void SleepMs(long ms) {
  const timespec pause{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&pause, nullptr);
}

// A process in a group of its own, as workers are; what it does is counted in shared memory.
class Victim {
 public:
  explicit Victim(const std::function<void(std::atomic<long>&)>& body) {
    void* const memory = mmap(nullptr, sizeof(std::atomic<long>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    count_ = new (memory) std::atomic<long>(0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setpgid(0, 0);
      body(*count_);
      _exit(0);
    }
    setpgid(pid_, pid_);
  }
  ~Victim() {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(count_, sizeof *count_);
  }
  pid_t pid() const { return pid_; }
  long count() const { return count_->load(); }
  // False when it does not get there within a minute.
  bool Await(long count) const {
    for (int i = 0; i < 60'000 && this->count() < count; ++i) SleepMs(1);
    return this->count() >= count;
  }

 private:
  pid_t pid_ = 0;
  std::atomic<long>* count_ = nullptr;
};

// Waits until the process has computed for 20 ms more.
bool Computes(pid_t pid) {
  const auto ran_ns = [pid] {
    std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
    long long ns = -1;
    file >> ns;
    return ns;
  };
  const long long before = ran_ns();
  for (int i = 0; i < 60'000 && ran_ns() < before + 20'000'000; ++i) SleepMs(1);
  return ran_ns() >= before + 20'000'000;
}

// Waits until this child was stopped and continued so often.
bool IsStoppedAndContinued(pid_t child, int times) {
  int stops = 0, goes = 0;
  for (int i = 0; i < 60'000 && (stops < times || goes < times); ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG | WUNTRACED | WCONTINUED) != child) {
      SleepMs(1);
    } else if (WIFSTOPPED(status)) {
      ++stops;
    } else if (WIFCONTINUED(status)) {
      ++goes;
    }
  }
  return stops >= times && goes >= times;
}

std::vector<pid_t> GroupOf(pid_t leader) {
  std::vector<pid_t> others;
  DIR* const directory = opendir("/proc");
  while (const dirent* entry = readdir(directory)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0 && pid != leader && getpgid(pid) == leader) others.push_back(pid);
  }
  closedir(directory);
  return others;
}

void Spin(std::atomic<long>& count) {
  for (;;) ++count;
}

cpu_set_t MaskOf(pid_t pid) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(pid, sizeof mask, &mask);
  return mask;
}

TEST(CpuHog, TakesItsPartOfTheProcessorAndGivesItBack) {
  const Victim victim(Spin);
  ASSERT_TRUE(victim.Await(1));
  const cpu_set_t usual = MaskOf(victim.pid());
  EXPECT_TRUE(GroupOf(victim.pid()).empty()) << "without the fault there is no hog";
  AgentFaults faults;
  faults.Begin(victim.pid());
  const Result<std::string> done = faults.Apply(0, {Kind::kCpuHog, 3, 0.3});
  ASSERT_TRUE(done.ok()) << done.status().message();
  EXPECT_THAT(*done, HasSubstr("3 processes spin on processor"));
  const cpu_set_t bound = MaskOf(victim.pid());
  EXPECT_EQ(CPU_COUNT(&bound), 1);
  const std::vector<pid_t> hogs = GroupOf(victim.pid());
  ASSERT_EQ(hogs.size(), 3u);
  // All compute on one processor, and its shares are the kernel's affair.
  for (const pid_t hog : hogs) {
    EXPECT_TRUE(Computes(hog));
    const cpu_set_t mask = MaskOf(hog);
    EXPECT_TRUE(CPU_EQUAL(&mask, &bound));
  }
  EXPECT_TRUE(Computes(victim.pid()));
  std::vector<std::uint32_t> healed;
  while (healed.empty()) {  // it lasts a while
    faults.HealDue([&](std::uint32_t fault) { healed.push_back(fault); });
  }
  EXPECT_THAT(healed, ::testing::ElementsAre(0u));
  EXPECT_TRUE(GroupOf(victim.pid()).empty());
  const cpu_set_t after = MaskOf(victim.pid());
  EXPECT_TRUE(CPU_EQUAL(&after, &usual));
}

TEST(CpuThrottle, StopsItAgainAndAgain) {
  const Victim victim(Spin);
  ASSERT_TRUE(victim.Await(1));
  AgentFaults faults;
  faults.Begin(victim.pid());
  EXPECT_FALSE(faults.throttles());
  ASSERT_TRUE(faults.Apply(0, {Kind::kCpuThrottle, 0.1, 0}).ok());
  EXPECT_TRUE(faults.throttles());
  EXPECT_TRUE(IsStoppedAndContinued(victim.pid(), 10));
  EXPECT_TRUE(Computes(victim.pid())) << "it is slow, not stopped";
  faults.HealAll();
  EXPECT_TRUE(GroupOf(victim.pid()).empty());
  const long then = victim.count();
  EXPECT_TRUE(victim.Await(then + 1000)) << "it goes on";
  EXPECT_EQ(waitpid(victim.pid(), nullptr, WNOHANG | WUNTRACED), 0) << "it is not left stopped";
}

TEST(Plugins, DieWithWhoAppliedTheFault) {
  const Victim victim(Spin);
  ASSERT_TRUE(victim.Await(1));
  const Victim agent([&](std::atomic<long>& count) {
    AgentFaults faults;
    faults.Begin(victim.pid());
    const bool hogs = faults.Apply(0, {Kind::kCpuHog, 2, 0}).ok();
    if (hogs && faults.Apply(1, {Kind::kCpuThrottle, 0.5, 0}).ok()) count = 1;
    pause();
  });
  ASSERT_TRUE(agent.Await(1));
  EXPECT_EQ(GroupOf(victim.pid()).size(), 3u);
  kill(agent.pid(), SIGKILL);
  for (int i = 0; i < 60'000 && !GroupOf(victim.pid()).empty(); ++i) SleepMs(1);
  EXPECT_TRUE(GroupOf(victim.pid()).empty());
}

// What a victim comes to that tries the same before and after: its steps.
void TryThrice(const control::AgentFault& fault, const std::function<bool()>& works,
               const std::vector<long>& expected) {
  const Victim victim([&](std::atomic<long>& count) {
    for (int i = 0; i < 3; ++i) {
      raise(SIGSTOP);
      count += 10 + (works() ? 1 : 0);
    }
    pause();
  });
  AgentFaults faults;
  faults.Begin(victim.pid());
  long known = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(waitpid(victim.pid(), nullptr, WUNTRACED), victim.pid());
    if (i == 1) {
      const Result<std::string> done = faults.Apply(0, fault);
      ASSERT_TRUE(done.ok()) << done.status().message();
    }
    if (i == 2) faults.HealAll();
    kill(victim.pid(), SIGCONT);
    ASSERT_TRUE(victim.Await(known + 10)) << "try " << i;
    EXPECT_EQ(victim.count() - known, expected[static_cast<std::size_t>(i)]) << "try " << i;
    known = victim.count();
  }
}

TEST(MemoryPressure, RefusesWhatIsLargerThanWhatIsLeft) {
  const auto maps = [] {
    constexpr std::size_t kBytes = 64 << 20;
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED && munmap(memory, kBytes) == 0;
  };
  TryThrice({Kind::kMemoryLimit, 16 << 20, 0}, maps, {11, 10, 11});
  TryThrice({Kind::kMemoryLimit, 128 << 20, 0}, maps, {11, 11, 11});
}

TEST(FdExhaustion, LeavesAsManyAsItSays) {
  const auto opens = [](int wanted) {
    std::vector<Fd> files;
    for (int i = 0; i < wanted; ++i) files.emplace_back(open("/dev/null", O_RDONLY));
    return std::all_of(files.begin(), files.end(), [](const Fd& file) { return file.valid(); });
  };
  TryThrice({Kind::kDescriptorLimit, 2, 0}, [&] { return opens(3); }, {11, 10, 11});
  TryThrice({Kind::kDescriptorLimit, 2, 0}, [&] { return opens(2); }, {11, 11, 11});
}

TEST(LowMemlock, IsTheLimitOfTheWorker) {
  // Root may lock what it likes: the limit itself is asked for.
  const auto may_lock = [] {
    rlimit limit{};
    return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur > 4096;
  };
  TryThrice({Kind::kLockedMemoryLimit, 4096, 0}, may_lock, {11, 10, 11});
}

std::int64_t FreeShm() {
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) != 0) return -1;
  return static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize);
}

TEST(ShmFull, FillsAPrivateOneAndNeverTheMachines) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a process with ThreadSanitizer's thread cannot enter a mount namespace";
#endif
  const std::int64_t machines = FreeShm();
  Result<std::unique_ptr<control::PrivateShm>> shm = control::PrivateShm::Create();
  if (!shm.ok()) GTEST_SKIP() << shm.status().message();
  setenv(control::kPrivateShmVariable, std::to_string((*shm)->holder()).c_str(), 1);
  const Victim victim([](std::atomic<long>& count) {
    control::EnterPrivateShm();
    for (;;) {
      count = FreeShm();
      SleepMs(1);
    }
  });
  unsetenv(control::kPrivateShmVariable);
  ASSERT_TRUE(victim.Await(1));
  EXPECT_EQ(victim.count(), control::kPrivateShmBytes);
  AgentFaults faults, others;
  faults.Begin(victim.pid());
  others.Begin(victim.pid());
  const Result<std::string> done = faults.Apply(0, {Kind::kShmFull, 65536, 0});
  ASSERT_TRUE(done.ok()) << done.status().message();
  // A second rank of the same container finds it done.
  EXPECT_TRUE(others.Apply(0, {Kind::kShmFull, 65536, 0}).ok());
  for (int i = 0; i < 60'000 && victim.count() != 65536; ++i) SleepMs(1);
  EXPECT_EQ(victim.count(), 65536);
  EXPECT_GT(FreeShm(), machines / 2);
  faults.HealAll();
  EXPECT_TRUE(victim.Await(control::kPrivateShmBytes));
}

TEST(ShmFull, IsRefusedWhereTheShmIsTheMachines) {
  const Victim victim(Spin);
  AgentFaults faults;
  faults.Begin(victim.pid());
  const Result<std::string> done = faults.Apply(0, {Kind::kShmFull, 0, 0});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.status().code(), StatusCode::kEnvironment);
  EXPECT_THAT(done.status().message(), HasSubstr("the machine's is not filled"));
}

TEST(ClockJump, IsRefusedForAProgramThatDoesNotReadTheOffset) {
  const Victim victim(Spin);
  AgentFaults faults;
  std::vector<std::string> environment;
  control::WorkerSetup setup;
  setup.movable_clock = true;
  ASSERT_TRUE(faults.Prepare(setup, environment).ok());
  faults.Begin(victim.pid());
  EXPECT_FALSE(faults.Apply(0, {Kind::kClockJump, 3600, 0}).ok());
}

}  // namespace
}  // namespace lockstep::agent
