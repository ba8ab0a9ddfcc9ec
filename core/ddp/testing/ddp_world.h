// Ranks of an engine as threads of one test, over gloo.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/gloo/gloo_communicator.h"
#include "core/comm/local_meeting.h"
#include "core/comm/testing/comm_contract.h"
#include "core/ddp/launcher.h"
#include "core/ddp/testing/own_memory.h"
#include "core/ddp/training.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommContract);  // only its threads are used here

// Which streams an engine gets.
enum class Streams {
  kOneInline,  // everything blocks
  kBeside,     // collectives on a thread, as PyTorch on CPUs
  kBoth,       // compute and collectives on a thread each, as on a GPU
};
inline constexpr Streams kAllStreams[] = {Streams::kOneInline, Streams::kBeside, Streams::kBoth};

struct DdpWorldOptions {
  int ranks = 2;
  Streams streams = Streams::kBeside;
  double timeout_seconds = 20;  // of gloo
  bool own_memory = false;      // collectives may be given memory of the device only
};

// Runs the body in a thread a rank. The observer of the ports is empty.
inline void RunDdpWorld(const DdpWorldOptions& options,
                        const std::function<void(EnginePorts ports)>& body) {
  comm::LocalMeeting meeting;
  comm::RunRanksAsThreads(
      options.ranks,
      [&](int rank) {
        return comm::gloo::ConnectGloo(rank, options.ranks, meeting, "ddp",
                                       {.host = "", .timeout_seconds = options.timeout_seconds},
                                       Deadline::AfterSeconds(20));
      },
      [&](comm::Communicator& world) {
        device::host::HostDevice host;
        OwnMemory own;
        OwnMemoryOnly only(world, own);
        device::Device& device = options.own_memory ? static_cast<device::Device&>(own) : host;
        comm::Communicator& seen =
            options.own_memory ? static_cast<comm::Communicator&>(only) : world;
        device::host::HostKernels of_host;
        OwnKernels of_own(own);
        device::Kernels& kernels =
            options.own_memory ? static_cast<device::Kernels&>(of_own) : of_host;
        const bool one = options.streams == Streams::kOneInline;
        const auto compute =
            options.streams == Streams::kBoth ? device.NewStream() : device.NewInlineStream();
        const auto communication = one ? nullptr : device.NewStream();
        body({seen, device, kernels, *compute, one ? *compute : *communication});
      });
}

// What a rank called: "ITER0" and the like, with "3:ALLREDUCE[2].Float" for each collective, as in
// the golden traces.
class TraceObserver final : public EngineObserver {
 public:
  struct Line {
    std::string section;
    std::string calls;  // separated by blanks
  };

  void OnCollective(const collective::Operation& operation,
                    const journal::Annotation& annotation) override {
    static constexpr std::string_view kKinds[] = {"ALLREDUCE", "BROADCAST", "BARRIER", "ALLGATHER"};
    std::string& calls = lines.back().calls;
    if (!calls.empty()) calls += ' ';
    calls +=
        fmt::format("{}:{}[{}].{}", next_++, kKinds[static_cast<std::size_t>(operation.collective)],
                    operation.count, collective::TorchNameOf(operation.type));
    purposes.push_back(annotation.purpose);
  }
  void OnSection(const Section& section) override {
    static constexpr std::string_view kNames[] = {"CTOR", "ITER", "EVAL", "JOINEXIT", "AFTER"};
    const bool numbered =
        section.kind == SectionKind::kIteration || section.kind == SectionKind::kEvaluation;
    const std::string_view name = kNames[static_cast<std::size_t>(section.kind)];
    lines.push_back({numbered ? fmt::format("{}{}", name, section.index) : std::string(name), ""});
  }
  void OnPhase(journal::Phase phase) override { phases.push_back(phase); }

  std::vector<Line> lines;
  std::vector<journal::Purpose> purposes;
  std::vector<journal::Phase> phases;

 private:
  int next_ = 0;
};

class NoSurroundings final : public TrainingSurroundings {
 public:
  Status Sleep(std::int64_t) override { return OkStatus(); }
};

}  // namespace lockstep::ddp
