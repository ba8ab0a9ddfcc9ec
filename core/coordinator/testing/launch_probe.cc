// launch_probe SCENARIO SEED [FILE]: driver and worker of the launch tests; run under mpirun.
// FILE.<rank> is what the successor saves of each rank when the coordinator is lost.
#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/base/process_stat.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/testing/probe.h"
#include "core/worker/worker_link.h"

namespace lockstep::coordinator {
namespace {

CoordinatorOptions ProbeOptions(const control::LaunchContext& context,
                                const ProbeScenario& scenario, const std::string& file) {
  CoordinatorOptions options;
  options.workers_own_mpi = scenario.mpi;
  options.connect_deadline_seconds = 30;
  options.silence_deadline_seconds = scenario.silence_seconds;
  options.journal_capacity = 1 << 10;
  options.outbox_capacity_bytes = kOutboxBytes;
  if (!file.empty()) {
    options.keep_data = true;
    options.on_failover = [=](const FailoverReport& failover) {
      for (int rank = 0; rank < context.size; ++rank) {
        const auto index = static_cast<std::size_t>(rank);
        std::ofstream out(fmt::format("{}.{}", file, rank), std::ios::binary);
        out << static_cast<int>(failover.evidence[index].state) << ' ' << failover.successor << ' '
            << failover.whole << '\n'
            << failover.data[index];
      }
      return ExitCode::kFailed;
    };
  }
  return options;
}

// How many sockets of this process lead to another process. An agent's way to the kernel does not.
int CountConnections() {
  return static_cast<int>(std::ranges::count_if(NumbersIn("/proc/self/fd"), [](int fd) {
    sockaddr_storage peer;
    socklen_t length = sizeof peer;
    return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
           peer.ss_family != AF_NETLINK;
  }));
}

int Run(const std::string& name, std::uint64_t seed, const std::string& file) {
  const ProbeScenario& scenario = Scenarios().at(name);
  const Result<control::LaunchContext> context = control::DetectLaunch();
  ProbeDriver::Expect(context.ok(), context.status().message());
  const CoordinatorOptions options = ProbeOptions(*context, scenario, file);
  if (context->rank != 0) return static_cast<int>(Follow(*context, options));
  Result<std::unique_ptr<Coordinator>> coordinator = Coordinator::Open(*context, options);
  ProbeDriver::Expect(coordinator.ok(), coordinator.status().message());
  ProbeDriver driver(**coordinator, seed);
  const int code = scenario.run(driver);
  driver.End();
  (*coordinator)->Dismiss(static_cast<ExitCode>(code));
  // The others wait for their connection's end; the launcher is to see this process's end before.
  const int connections = CountConnections();
  coordinator->reset();
  ProbeDriver::Expect(CountConnections() == connections, "the end of a coordinator closes nothing");
  fmt::print("done {}\n", name);
  std::fflush(stdout);
  return code;
}

}  // namespace
}  // namespace lockstep::coordinator

int main(int argc, char** argv) {
  if (lockstep::worker::WorkerLink::IsWorker()) return lockstep::coordinator::RunProbeWorker();
  if (argc < 3) return 2;
  return lockstep::coordinator::Run(argv[1], std::strtoull(argv[2], nullptr, 10),
                                    argc > 3 ? argv[3] : "");
}
