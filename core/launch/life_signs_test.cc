#include "core/launch/life_signs.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr Ticks kSilence = 7;

// A process that does `work` again and again, on the first processor that it may use.
class Busy {
 public:
  explicit Busy(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    CPU_ZERO(&one);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed)) ++cpu;
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    while (true) work();
  }
  ~Busy() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

LifeSigns AfterTwoLooks(pid_t pid, Ticks& between) {
  LifeSigns life;
  usleep(200'000);
  life.Look(pid, kSilence);
  between = NowTicks();
  usleep(400'000);
  life.Look(pid, kSilence);
  return life;
}

TEST(LifeSigns, WhoSleepsShowsNone) {
  const Busy sleeper([] { pause(); });
  Ticks between = 0;
  const LifeSigns life = AfterTwoLooks(sleeper.pid(), between);
  EXPECT_LT(life.grew(), between);
  EXPECT_LT(life.SecondsStarved(kSilence), 0.05);
}

TEST(LifeSigns, MemoryThatComesIsOne) {
  const Busy grower([] {
    char* page = static_cast<char*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    *page = 1;
    munmap(page, 4096);
    usleep(5'000);
  });
  Ticks between = 0;
  EXPECT_GT(AfterTwoLooks(grower.pid(), between).grew(), between);
}

TEST(LifeSigns, WhoSharesItsProcessorIsStarved) {
  const Busy one([] {}), two([] {}), three([] {});
  Ticks between = 0;
  const LifeSigns life = AfterTwoLooks(one.pid(), between);
  EXPECT_GT(life.SecondsStarved(kSilence), 0.1);
  // Nothing is known of a silence that was not looked at.
  EXPECT_EQ(life.SecondsStarved(kSilence + 1), 0);
  EXPECT_LT(life.grew(), between);
}

TEST(LifeSigns, OfAProcessThatIsGoneThereAreNone) {
  pid_t pid = 0;
  {
    const Busy gone([] {});
    pid = gone.pid();
  }
  LifeSigns life;
  life.Look(pid, kSilence);
  life.Look(pid, kSilence);
  EXPECT_EQ(life.grew(), 0u);
  EXPECT_EQ(life.SecondsStarved(kSilence), 0);
}

}  // namespace
}  // namespace lockstep
