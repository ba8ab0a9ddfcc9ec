// The worker of the launch tests: does what it is told, also badly.
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "core/base/deadline.h"
#include "core/base/print_stderr.h"
#include "core/control/rendezvous/testing/mpi_probe.h"
#include "core/coordinator/testing/probe.h"
#include "core/worker/worker_link.h"

extern char** environ;

namespace lockstep::coordinator {
namespace {

class ProbeWorker {
 public:
  explicit ProbeWorker(worker::WorkerLink& link) : link_(link) {}

  int Run() {
    Say(kReady, std::to_string(getpid()));
    while (true) {
      const Result<control::Message> order = link_.Receive(Deadline::AfterSeconds(120));
      if (!order.ok()) return 90;
      std::istringstream words(order->payload);
      std::string verb;
      long number = 0;
      words >> verb >> number;
      if (verb == "exit") {
        link_.journal().Exit(static_cast<int>(number));
        return static_cast<int>(number);
      }
      Act(verb, number, order->payload);
    }
  }

 private:
  void Say(std::uint32_t type, const std::string& text) {
    if (!link_.Send(control::Message{type, text}).ok()) std::_Exit(91);
  }

  void Act(const std::string& verb, long number, const std::string& payload) {
    link_.journal().EnterPhase(journal::Phase::kMeasure);
    if (verb == "echo")
      return Say(kEcho, fmt::format("{} {} {}", payload, link_.rank(), link_.lifetime()));
    if (verb == "meet") return Meet();
    if (verb == "stream") return Stream(number);
    if (verb == "sleep") return SleepForEver();
    if (verb == "allocate") return Allocate(number);
    if (verb == "wait") return WaitForPeers();
    if (verb == "crash") std::abort();
    if (verb == "stubborn") return Stubborn();
    if (verb == "blob") return Say(kEcho, payload);
    if (verb == "mpi_init") return Say(kEcho, control::rendezvous::ProbeMpiInit());
    if (verb == "mpi_loop")
      return Say(kEcho, control::rendezvous::ProbeMpiLoop(number, link_.journal()));
    if (verb == "mpi_finalize") return Say(kEcho, control::rendezvous::ProbeMpiFinalize());
    std::_Exit(92);
  }

  void Meet() {
    const std::string own = fmt::format("address of {}", link_.rank());
    if (!link_.meeting().Put(fmt::format("rank/{}", link_.rank()), own).ok()) std::_Exit(93);
    std::string all;
    for (int rank = 0; rank < link_.size(); ++rank) {
      const auto value =
          link_.meeting().Get(fmt::format("rank/{}", rank), Deadline::AfterSeconds(20));
      all += value.ok() ? *value + ";" : value.status().message();
    }
    const auto none = link_.meeting().Get("nobody puts this", Deadline::AfterSeconds(0.05));
    if (none.ok() || none.status().code() != StatusCode::kDeadlineExceeded) all = "no deadline";
    Say(kEcho, all);
  }

  // Counters 0, 1, 2 … as records of 24 bytes; for ever when `records` is 0.
  void Stream(long records) {
    for (std::uint64_t i = 0; records == 0 || i < static_cast<std::uint64_t>(records); ++i) {
      const std::uint64_t record[3] = {i, ~i, i * 3};
      while (!link_.outbox().Append(std::as_bytes(std::span(record)))) {
        Say(kProgress, {});
        usleep(200);
      }
      journal::JournalEvent event;
      event.kind = i % 2 == 0 ? journal::EventKind::kStart : journal::EventKind::kEnd;
      event.sequence = i / 2;
      link_.journal().Append(event);
      if (i % 512 == 0) {
        Say(kProgress, {});
        usleep(500);
      }
    }
    Say(kDone, {});
  }

  [[gnu::noinline]] void SleepForEver() {
    while (true) pause();
  }

  // One page after the other, for so many seconds, then no more.
  void Allocate(long seconds) {
    link_.journal().EnterPhase(journal::Phase::kAllocate);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (const Deadline end = Deadline::AfterSeconds(static_cast<double>(seconds));
         !end.Passed();) {
      void* const memory =
          mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) std::_Exit(95);
      *static_cast<volatile char*>(memory) = 1;
      munmap(memory, page);
    }
    Say(kDone, {});
    SleepForEver();
  }

  void WaitForPeers() {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::_Exit(94);
    pollfd item{pair[0], POLLIN, 0};
    poll(&item, 1, -1);
  }

  // Neither hears nor leaves, and has a child that sleeps.
  void Stubborn() {
    char program[] = "sleep", seconds[] = "1000";
    char* arguments[] = {program, seconds, nullptr};
    pid_t pid = 0;
    posix_spawnp(&pid, "sleep", nullptr, nullptr, arguments, environ);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    Say(kEcho, std::to_string(pid));
    SleepForEver();
  }

  worker::WorkerLink& link_;
};

}  // namespace

int RunProbeWorker() {
  Result<std::unique_ptr<worker::WorkerLink>> link = worker::WorkerLink::Open();
  if (!link.ok()) {
    PrintStderr("{}\n", link.status().message());
    return static_cast<int>(ExitCodeOf(link.status().code()));
  }
  return ProbeWorker(**link).Run();
}

}  // namespace lockstep::coordinator
