// Every cause once: how files name it, how grave it is, whom it blames, what to do about it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::verdict {

enum class Cause : std::uint8_t {
  kCollectiveMismatch,
  kCountMismatch,
  kTypeMismatch,
  kRootMismatch,
  kReductionMismatch,
  kOrderInversion,
  kRankExited,
  kRankFailed,
  kRankCrashed,
  kRankKilled,
  kRankStopped,
  kRankBusy,
  kOutputBlocked,
  kUnevenInputs,
  kOneSidedEvaluation,
  kOneSidedUnusedParameters,
  kTransportStall,
  kSlowRank,
  kSlowLink,
  kHostDied,
  kHostCutOff,
  kHostStopped,
  kLauncherLost,
  kAgentLost,
  kDataCorruption,
  kStreamRace,
  kInitFailure,
  kAbortHung,
  kOutOfMemory,
  kNoEffect,
  kUnknown,
  kSlowHost,
  kRankLost,
  kForeign,  // named by a file: a cause of another version, a rule of `lockstep doctor`
};

enum class Severity : std::uint8_t {
  kInconclusive,  // nothing is known of the system under test
  kSlow,          // it goes on
  kFailure,
};

// What the culprits of a finding stand for.
enum class Blame : std::uint8_t { kNobody, kCalls, kProgram, kRank, kLink, kHost, kAgent };

struct CauseInfo {
  Cause cause = Cause::kForeign;
  std::string_view name;
  Severity severity = Severity::kFailure;
  Blame blame = Blame::kNobody;
  bool of_cases = true;          // a stress case may end with it: scenarios may expect it
  std::string_view remedy = "";  // one sentence; empty: it depends on what was found
};

inline constexpr std::array<CauseInfo, static_cast<std::size_t>(Cause::kForeign) + 1> kCauses = {{
    {Cause::kCollectiveMismatch, "collective_mismatch", Severity::kFailure, Blame::kCalls},
    {Cause::kCountMismatch, "count_mismatch", Severity::kFailure, Blame::kCalls},
    {Cause::kTypeMismatch, "type_mismatch", Severity::kFailure, Blame::kCalls},
    {Cause::kRootMismatch, "root_mismatch", Severity::kFailure, Blame::kCalls},
    {Cause::kReductionMismatch, "reduction_mismatch", Severity::kFailure, Blame::kCalls},
    {Cause::kOrderInversion, "order_inversion", Severity::kFailure, Blame::kProgram, true,
     "Call the collectives of different communicators in the same order on all ranks (with NCCL "
     "2.26 or newer NCCL_LAUNCH_ORDER_IMPLICIT=1 lets one host thread's order decide)."},
    {Cause::kRankExited, "rank_exited", Severity::kFailure, Blame::kRank},
    {Cause::kRankFailed, "rank_failed", Severity::kFailure, Blame::kRank},
    {Cause::kRankCrashed, "rank_crashed", Severity::kFailure, Blame::kRank},
    {Cause::kRankKilled, "rank_killed", Severity::kFailure, Blame::kRank},
    {Cause::kRankStopped, "rank_stopped", Severity::kFailure, Blame::kRank},
    {Cause::kRankBusy, "rank_busy", Severity::kFailure, Blame::kRank},
    {Cause::kOutputBlocked, "output_blocked", Severity::kFailure, Blame::kRank, true,
     "Let the program that holds the other end of the pipe read it until the rank ends, or "
     "send the rank's output to a file (torchrun --redirects=3)."},
    {Cause::kUnevenInputs, "uneven_inputs", Severity::kFailure, Blame::kProgram},
    {Cause::kOneSidedEvaluation, "one_sided_evaluation", Severity::kFailure, Blame::kProgram, true,
     "Evaluate with model.module(x) (or set broadcast_buffers=False) where not all ranks "
     "evaluate, or let all ranks evaluate the same number of inputs."},
    {Cause::kOneSidedUnusedParameters, "one_sided_unused_parameters", Severity::kFailure,
     Blame::kProgram, true,
     "Set find_unused_parameters=True, or let every parameter take part in the loss on every "
     "rank; a backward pass that one rank runs under no_sync() looks the same."},
    {Cause::kTransportStall, "transport_stall", Severity::kFailure, Blame::kLink},
    {Cause::kSlowRank, "slow_rank", Severity::kSlow, Blame::kRank},
    {Cause::kSlowLink, "slow_link", Severity::kSlow, Blame::kLink},
    {Cause::kHostDied, "host_died", Severity::kFailure, Blame::kHost},
    {Cause::kHostCutOff, "host_cut_off", Severity::kFailure, Blame::kHost},
    {Cause::kHostStopped, "host_stopped", Severity::kFailure, Blame::kHost},
    {Cause::kLauncherLost, "launcher_lost", Severity::kFailure, Blame::kHost},
    {Cause::kAgentLost, "agent_lost", Severity::kInconclusive, Blame::kAgent},
    {Cause::kDataCorruption, "data_corruption", Severity::kFailure, Blame::kRank, true,
     "Do not train on this machine until it is understood: run the case again with another "
     "algorithm or transport of the library, then on other hosts or GPUs, and see what it "
     "follows."},
    {Cause::kStreamRace, "stream_race", Severity::kFailure, Blame::kProgram},
    {Cause::kInitFailure, "init_failure", Severity::kFailure, Blame::kRank},
    {Cause::kAbortHung, "abort_hung", Severity::kFailure, Blame::kRank, true,
     "End such a process from outside, and let a fresh one take its place: a library that does "
     "not abort cannot be recovered in the process."},
    {Cause::kOutOfMemory, "out_of_memory", Severity::kFailure, Blame::kRank},
    {Cause::kNoEffect, "no_effect", Severity::kFailure, Blame::kProgram, true,
     "Call collectives of a group on its members only (group.rank() >= 0), or make the caller a "
     "member."},
    {Cause::kUnknown, "unknown", Severity::kInconclusive, Blame::kNobody},
    {Cause::kSlowHost, "slow_host", Severity::kSlow, Blame::kHost, false},
    {Cause::kRankLost, "rank_lost", Severity::kFailure, Blame::kRank, false},
    {Cause::kForeign, "", Severity::kFailure, Blame::kNobody, false},
}};

constexpr const CauseInfo& InfoOf(Cause cause) { return kCauses[static_cast<std::size_t>(cause)]; }
constexpr std::string_view NameOf(Cause cause) { return InfoOf(cause).name; }

// Those that a scenario may expect, in the order of the table.
std::vector<std::string_view> NamesOfCases();

// The cause of a finding: one of the table, or a name that only the writer of a file knows.
class FindingCause {
 public:
  FindingCause(Cause cause = Cause::kUnknown) : cause_(cause) {}
  // As files have it.
  static FindingCause Named(std::string_view name);

  Cause known() const { return cause_; }
  std::string_view name() const { return cause_ == Cause::kForeign ? foreign_ : NameOf(cause_); }
  const CauseInfo& info() const { return InfoOf(cause_); }
  friend bool operator==(const FindingCause&, const FindingCause&) = default;
  // What a failed test shows.
  friend void PrintTo(const FindingCause& cause, std::ostream* out) { *out << cause.name(); }

 private:
  Cause cause_;
  std::string foreign_;
};

}  // namespace lockstep::verdict
