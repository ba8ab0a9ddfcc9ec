#include "core/launch/evidence.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// A shell command as a child process that is ended with the object.
class Process {
 public:
  explicit Process(std::string command) {
    char shell[] = "/bin/sh", option[] = "-c";
    char* const arguments[] = {shell, option, command.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, shell, nullptr, nullptr, arguments, environ), 0);
    const timespec pause{0, 200'000'000};  // until the shell has become the command
    nanosleep(&pause, nullptr);
  }
  ~Process() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

SystemEvidence Look(const Process& process, const std::string& earlier = "") {
  return LookAt(process.pid(), Deadline::AfterSeconds(5), earlier);
}

// Taking the stack stops the process, and its sleep then goes on as another system call.
TEST(EvidenceTest, ASleeperIsAsleepInEveryLook) {
  const Process process("exec sleep 60");
  SystemEvidence evidence = Look(process, evidence.call);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(evidence.asleep) << evidence.text;
    EXPECT_NE(evidence.text.find("asleep in clock_nanosleep"), std::string::npos) << evidence.text;
    kill(process.pid(), SIGSTOP);
    kill(process.pid(), SIGCONT);
    evidence = Look(process);
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
  const Process process("mkfifo \"$TEST_TMPDIR/pipe\"; exec cat <>\"$TEST_TMPDIR/pipe\"");
  const SystemEvidence evidence = Look(process);
  EXPECT_FALSE(evidence.asleep) << evidence.text;
  EXPECT_NE(evidence.text.find("waiting in read"), std::string::npos) << evidence.text;
}

}  // namespace
}  // namespace lockstep
