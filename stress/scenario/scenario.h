// A scenario: a program that the ranks run, the faults that befall them, and what is expected. One
// TOML file each; users write their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/ddp/training.h"
#include "core/verdict/cause.h"
#include "stress/scenario/loading.h"
#include "stress/scenario/recovery.h"
#include "stress/scenario/script.h"

namespace lockstep::stress::scenario {

// What a program of the `stream_race` workload forgets, a custom kernel and a collective on two
// streams. Sources: pytorch PR#18465 and #19267 (waits), PR#112195 (record_stream).
enum class RacePattern : std::uint8_t {
  kMissingWaitBefore,  // the collective does not wait for the kernel that writes its input
  kMissingWaitAfter,   // the kernel that reads the result does not wait for the collective
  kBufferReuse,        // a kernel writes the next input over the one that is still being sent
  kFreeWhileInUse,     // … or an allocator gives the memory to somebody else
  kEventBeforeWork,    // the event that is waited for was recorded before the kernel was enqueued
};
// The cure.
enum class RaceGuard : std::uint8_t {
  kNone,
  kEvent,           // the one stream waits for an event of the other; the host goes on
  kStreamSync,      // the host waits for the one stream
  kDeviceSync,      // … for all streams
  kLaunchBlocking,  // … after every launch, as with CUDA_LAUNCH_BLOCKING=1
};

inline constexpr std::string_view kRacePatternNames[] = {"missing_wait_before",
                                                         "missing_wait_after", "buffer_reuse",
                                                         "free_while_in_use", "event_before_work"};
inline constexpr std::string_view kRaceGuardNames[] = {"none", "event", "stream_sync",
                                                       "device_sync", "launch_blocking"};
inline std::string_view NameOf(RacePattern pattern) {
  return kRacePatternNames[static_cast<std::size_t>(pattern)];
}
inline std::string_view NameOf(RaceGuard guard) {
  return kRaceGuardNames[static_cast<std::size_t>(guard)];
}

// Every key of the workload and its default.
struct StreamRaceProgram {
  RacePattern pattern = RacePattern::kMissingWaitBefore;
  RaceGuard guard = RaceGuard::kNone;
  std::int64_t rounds = 40;
  std::int64_t count = 16384;  // elements (f32)
  double work_us = 1000;       // of the kernel; a round's is from half to one and a half times that
  // What the program itself does after its launches: waiting on the host costs this overlap.
  double host_us = 500;
  ddp::AfterFinish after_finish = ddp::AfterFinish::kExit;
};

// The `graph_replay` workload. The first round calls the operations, so that the library connects;
// the second one captures them and replays the graph, as all later ones do.
struct GraphReplayProgram {
  std::vector<collective::Operation> operations;  // of a round
  std::int64_t rounds = 20;
  ddp::AfterFinish after_finish = ddp::AfterFinish::kExit;
};

// What a rank runs. A further kind of workload is a further alternative here and a row of kKinds in
// scenario_workload.cc.
using Workload = std::variant<ddp::TrainingProgram, ScriptProgram, LoadingProgram,
                              StreamRaceProgram, GraphReplayProgram>;

// Something that befalls ranks. What its kind needs further is checked by whoever injects it.
struct FaultSpec {
  std::string kind = {};  // "kill"
  std::vector<int> ranks = {};
  std::string at = {};  // "iteration:3"
  std::optional<double> duration_seconds = std::nullopt;
  std::map<std::string, double> amounts = {};  // "bytes", "share" …; times in seconds
  std::vector<std::string> variables = {};     // of `environment`: "NAME=VALUE"
  std::int64_t line = 0;                       // in the file, for errors
};

// What must come out. Every rank has the outcomes that are all right for it.
struct Expectation {
  std::vector<std::vector<std::string>> ranks;  // one a rank; none: not said
  std::optional<verdict::Cause> cause;          // none: not said
  std::vector<int> culprits;
  std::vector<int> hosts_of = {};  // the culprits' hosts are those of these ranks; none: not said
  // Figures that every rank reports, each from the one number to the other.
  std::map<std::string, std::pair<double, double>> figures = {};
  std::string recovery = {};  // "resumed" …; empty: not said
};

struct Scenario {
  std::string origin;  // the file
  std::string name;
  std::string description;
  std::string source;
  std::vector<int> allowed_ranks;  // numbers of ranks it is meant for; empty: any
  int ranks = 0;                   // the number that it was read for
  int hosts = 1;                   // it needs so many at least
  Workload workload;
  std::vector<FaultSpec> faults;
  std::optional<RecoveryPlan> recovery;  // none: a lost rank ends the run
  std::string requirement;  // what it cannot be shown without: "nccl", "cuda"; or empty
  std::map<std::string, Expectation> expect;  // by backend, or rule set of sim, or "any"
};

// Whether a rank whose program is over stays, with its connections.
inline bool Lingers(const Scenario& scenario) {
  return std::visit([](const auto& program) { return program.after_finish; }, scenario.workload) ==
         ddp::AfterFinish::kLinger;
}

struct ScenarioOptions {
  // Number of ranks in place of the file's. None: the file's, the first of a list, 2 for "any".
  std::optional<int> ranks = std::nullopt;
  // Rules that decide the buckets where the file does not say them.
  ddp::TorchRules torch = ddp::TorchRules::k2_6;
};

// For more, core/collective has no data whose results are known.
inline constexpr int kMaxScenarioRanks = 1 << 16;

// Reads `text`; `origin` names it in errors. Every mistake is kInvalidInput in one line:
// "FILE:LINE: key KEY: what is wrong; what is right". Of several the first line's is told.
Result<Scenario> ParseScenario(std::string_view text, const std::string& origin,
                               const ScenarioOptions& options = {});

// Of a file. Errors: those of ParseScenario; kInvalidInput when it is no file or larger than 1 MiB;
// kEnvironment when it can't be read.
Result<Scenario> LoadScenario(const std::string& path, const ScenarioOptions& options = {});

}  // namespace lockstep::stress::scenario
