// A thread that looks, and sleeps for twenty times as long as a look cost it. What a look saw was
// so at some moment between the clock before it and the clock after it.
#include "stress/links/socket_log.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/agent/sockets.h"
#include "core/base/clock.h"
#include "core/environment/run_delay.h"

namespace lockstep::stress::links {
namespace {

constexpr double kLookSeconds = 0.004;  // between two looks
constexpr double kLooksPerCost = 20;
constexpr double kLooksPerAverage = 16;
// Listing threads costs more than reading what all of them waited.
constexpr int kLooksPerListing = 16;
constexpr double kLongestPauseSeconds = 0.05;

double Now() { return static_cast<double>(MonotonicNs()) * 1e-9; }

// Of the processor: on a busy machine the clock on the wall says nothing of what we cost it.
double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

void SocketLog::Begin(pid_t pid, pid_t relay,
                      std::function<void(std::vector<verdict::TcpSocket>&)> translate) {
  End();
  book_ = SocketBook();
  ending_ = false;
  translate_ = std::move(translate);
  thread_ = std::thread([=, this] { Run(pid, relay); });
}

void SocketLog::End() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  thread_.join();
}

std::vector<verdict::TcpSocket> SocketLog::Connections() const {
  const std::lock_guard lock(mutex_);
  return book_.Connections();
}

void SocketLog::Run(pid_t pid, pid_t relay) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the agent's
  environment::RunDelay worker_delay(pid), relay_delay(getpid(), relay);
  agent::SocketLooks looks(pid);
  int number = 0;
  double cost_s = 0;  // of the last looks, on average: few of them search
  while (true) {
    const double began_s = ThreadSeconds();
    if (++number % kLooksPerListing == 0) worker_delay.FindThreads();
    SocketBook::Look look;
    look.began_s = Now();
    look.waited_s = worker_delay.Seconds() + relay_delay.Seconds();
    if (!worker_delay.known()) look.waited_s = std::numeric_limits<double>::quiet_NaN();
    std::vector<verdict::TcpSocket> seen = looks.Look();
    look.ended_s = Now();
    translate_(seen);
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      book_.Note(seen, look);
    }
    cost_s += (ThreadSeconds() - began_s - cost_s) / kLooksPerAverage;
    const double pause_s =
        std::min(std::max(kLookSeconds, kLooksPerCost * cost_s), kLongestPauseSeconds);
    const timespec pause{0, static_cast<long>(pause_s * 1e9)};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace lockstep::stress::links
