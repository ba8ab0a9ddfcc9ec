// Ranks of an engine as threads of one test, over gloo.
#ifndef LOCKSTEP_CORE_DDP_DDP_WORLD_H_
#define LOCKSTEP_CORE_DDP_DDP_WORLD_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/comm_contract.h"
#include "core/comm/gloo/gloo_communicator.h"
#include "core/comm/local_meeting.h"
#include "core/ddp/launcher.h"
#include "core/ddp/own_memory.h"
#include "core/ddp/training.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace lockstep {

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
  LocalMeeting meeting;
  RunRanksAsThreads(
      options.ranks,
      [&](int rank) {
        return ConnectGloo(rank, options.ranks, meeting, "ddp",
                           {.host = "", .timeout_seconds = options.timeout_seconds},
                           Deadline::AfterSeconds(20));
      },
      [&](Communicator& world) {
        HostDevice host;
        OwnMemory own;
        OwnMemoryOnly only(world, own);
        Device& device = options.own_memory ? static_cast<Device&>(own) : host;
        Communicator& seen = options.own_memory ? static_cast<Communicator&>(only) : world;
        HostKernels of_host;
        OwnKernels of_own(own);
        Kernels& kernels = options.own_memory ? static_cast<Kernels&>(of_own) : of_host;
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

  void OnCollective(const Operation& operation, const Annotation& annotation) override {
    static constexpr std::string_view kKinds[] = {"ALLREDUCE", "BROADCAST", "BARRIER", "ALLGATHER"};
    std::string& calls = lines.back().calls;
    if (!calls.empty()) calls += ' ';
    calls +=
        fmt::format("{}:{}[{}].{}", next_++, kKinds[static_cast<std::size_t>(operation.collective)],
                    operation.count, TorchNameOf(operation.type));
    purposes.push_back(annotation.purpose);
  }
  void OnSection(const Section& section) override {
    static constexpr std::string_view kNames[] = {"CTOR", "ITER", "EVAL", "JOINEXIT", "AFTER"};
    const bool numbered =
        section.kind == SectionKind::kIteration || section.kind == SectionKind::kEvaluation;
    const std::string_view name = kNames[static_cast<std::size_t>(section.kind)];
    lines.push_back({numbered ? fmt::format("{}{}", name, section.index) : std::string(name), ""});
  }
  void OnPhase(Phase phase) override { phases.push_back(phase); }

  std::vector<Line> lines;
  std::vector<Purpose> purposes;
  std::vector<Phase> phases;

 private:
  int next_ = 0;
};

class NoSurroundings final : public TrainingSurroundings {
 public:
  Status Sleep(std::int64_t) override { return OkStatus(); }
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_DDP_DDP_WORLD_H_
