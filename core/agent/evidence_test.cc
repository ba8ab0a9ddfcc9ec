// Looks at processes that sleep, wait, compute, or are gone.
#include "core/agent/evidence.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::agent {
namespace {

void Pause() {
  const timespec pause{0, 50'000'000};
  nanosleep(&pause, nullptr);
}

// A shell command as a child process that is ended with the object.
class Process {
 public:
  // `name`: of the program that the shell becomes, which then stays in one system call.
  explicit Process(std::string command, const std::string& name = "") {
    char shell[] = "/bin/sh", option[] = "-c";
    char* const arguments[] = {shell, option, command.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, shell, nullptr, nullptr, arguments, environ), 0);
    if (!name.empty()) AwaitCall(name);
  }
  ~Process() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  pid_t pid() const { return pid_; }

  // Until the program of that name stays in one system call.
  void AwaitCall(const std::string& name) const {
    std::string last;
    for (int i = 0; i < 400; ++i) {
      const std::string call = Line("syscall");
      if (Line("comm") == name && call == last && call != "running") return;
      last = call;
      Pause();
    }
    ADD_FAILURE() << "no " << name << " in a system call within 20 s";
  }

 private:
  std::string Line(const char* name) const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/" + name);
    std::string line;
    std::getline(file, line);
    return line;
  }

  pid_t pid_ = 0;
};

SystemEvidence Look(const Process& process, const std::string& earlier = "") {
  return LookAt(process.pid(), Deadline::AfterSeconds(60), earlier);
}

TEST(EvidenceTest, WhoIsEndingShows) {
  const Process process("exec sleep 60", "sleep");
  EXPECT_FALSE(IsEnding(process.pid()));
  kill(process.pid(), SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(IsEnding(process.pid())) << "nobody has waited for it yet";
}

constexpr char kWithoutElfutils[] = "built without elfutils (libdw)";

// Children of this thread but one, ended as an assertion of a library ends its process.
void AbortOthers(pid_t parent, pid_t spared) {
  const std::string task = std::to_string(parent);
  std::ifstream children("/proc/" + task + "/task/" + task + "/children");
  for (pid_t child = 0; children >> child;) {
    if (child != spared) kill(child, SIGABRT);
  }
}

TEST(EvidenceTest, WhoReadsAStackIsExpendable) {
  const Process process("exec sleep 60", "sleep");
  if (Look(process).text.ends_with(kWithoutElfutils)) GTEST_SKIP() << kWithoutElfutils;
  std::atomic<bool> over = false;
  std::thread end([&, self = getpid()] {
    while (!over) AbortOthers(self, process.pid());
  });
  std::string text;
  for (int look = 0; look < 100 && !text.ends_with("it went away while it was read"); ++look) {
    text = Look(process).text;
  }
  over = true;
  end.join();
  EXPECT_THAT(text, testing::EndsWith("no stack: it went away while it was read"));
  EXPECT_THAT(Look(process).text, testing::Not(testing::HasSubstr("it went away")));
}

// Taking the stack stops the process, and its sleep then goes on as another system call.
TEST(EvidenceTest, ASleeperIsAsleepInEveryLook) {
  const Process process("exec sleep 60", "sleep");
  SystemEvidence evidence = Look(process);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(evidence.asleep) << evidence.text;
    EXPECT_NE(evidence.text.find("asleep in clock_nanosleep"), std::string::npos) << evidence.text;
    kill(process.pid(), SIGSTOP);
    kill(process.pid(), SIGCONT);
    process.AwaitCall("sleep");
    evidence = Look(process, evidence.call);
  }
}

TEST(EvidenceTest, ABusyProcessIsNot) {
  const Process process("while :; do :; done");
  SystemEvidence evidence = Look(process);
  EXPECT_FALSE(evidence.asleep) << evidence.text;
  evidence = Look(process, evidence.call);
  EXPECT_FALSE(evidence.asleep) << evidence.text;
}

TEST(EvidenceTest, AReaderWaitsForAPeer) {
  const Process process("mkfifo \"$TEST_TMPDIR/pipe\"; exec cat <>\"$TEST_TMPDIR/pipe\"", "cat");
  const SystemEvidence evidence = Look(process);
  EXPECT_FALSE(evidence.asleep) << evidence.text;
  EXPECT_NE(evidence.text.find("waiting in read"), std::string::npos) << evidence.text;
}

}  // namespace
}  // namespace lockstep::agent
