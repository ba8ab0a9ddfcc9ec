// Every cause once: how files name it, how grave it is, whom it blames, what to do about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::verdict {

// Every cause once.
#define LOCKSTEP_CAUSES(CAUSE)                                                                     \
  CAUSE(kCollectiveMismatch, "collective_mismatch", kFailure, kCalls)                              \
  CAUSE(kCountMismatch, "count_mismatch", kFailure, kCalls)                                        \
  CAUSE(kTypeMismatch, "type_mismatch", kFailure, kCalls)                                          \
  CAUSE(kRootMismatch, "root_mismatch", kFailure, kCalls)                                          \
  CAUSE(kReductionMismatch, "reduction_mismatch", kFailure, kCalls)                                \
  CAUSE(kOrderInversion, "order_inversion", kFailure, kProgram)                                    \
  CAUSE(kRankExited, "rank_exited", kFailure, kRank)                                               \
  CAUSE(kRankFailed, "rank_failed", kFailure, kRank)                                               \
  CAUSE(kRankCrashed, "rank_crashed", kFailure, kRank)                                             \
  CAUSE(kRankKilled, "rank_killed", kFailure, kRank)                                               \
  CAUSE(kRankStopped, "rank_stopped", kFailure, kRank)                                             \
  CAUSE(kRankBusy, "rank_busy", kFailure, kRank)                                                   \
  CAUSE(kOutputBlocked, "output_blocked", kFailure, kRank, true,                                   \
        "Let the program that holds the other end of the pipe read it until the rank ends, or "    \
        "send the rank's output to a file (torchrun --redirects=3).")                              \
  CAUSE(kUnevenInputs, "uneven_inputs", kFailure, kProgram)                                        \
  CAUSE(kOneSidedEvaluation, "one_sided_evaluation", kFailure, kProgram, true,                     \
        "Evaluate with model.module(x) (or set broadcast_buffers=False) where not all ranks "      \
        "evaluate, or let all ranks evaluate the same number of inputs.")                          \
  CAUSE(kOneSidedUnusedParameters, "one_sided_unused_parameters", kFailure, kProgram, true,        \
        "Set find_unused_parameters=True, or let every parameter take part in the loss on every "  \
        "rank; a backward pass that one rank runs under no_sync() looks the same.")                \
  CAUSE(kTransportStall, "transport_stall", kFailure, kLink)                                       \
  CAUSE(kSlowRank, "slow_rank", kSlow, kRank)                                                      \
  CAUSE(kSlowLink, "slow_link", kSlow, kLink)                                                      \
  CAUSE(kHostLost, "host_lost", kFailure, kHost)                                                   \
  CAUSE(kHostCutOff, "host_cut_off", kFailure, kHost)                                              \
  CAUSE(kHostStopped, "host_stopped", kFailure, kHost)                                             \
  CAUSE(kLauncherLost, "launcher_lost", kFailure, kHost)                                           \
  CAUSE(kAgentLost, "agent_lost", kInconclusive, kAgent)                                           \
  CAUSE(kDataCorruption, "data_corruption", kFailure, kRank, true,                                 \
        "Do not train on this machine until it is understood: run the case again with another "    \
        "algorithm or transport of the library, then on other hosts or GPUs, to see which of "     \
        "them the error follows.")                                                                 \
  CAUSE(kStreamRace, "stream_race", kFailure, kProgram)                                            \
  CAUSE(kInitFailure, "init_failure", kFailure, kRank)                                             \
  CAUSE(                                                                                           \
      kAbortHung, "abort_hung", kFailure, kRank, true,                                             \
      "End such a process from outside, and let a fresh one take its place: a library that does "  \
      "not abort cannot be recovered in the process.")                                             \
  CAUSE(kOutOfMemory, "out_of_memory", kFailure, kRank)                                            \
  CAUSE(                                                                                           \
      kNoEffect, "no_effect", kFailure, kProgram, true,                                            \
      "Call collectives of a group on its members only (group.rank() >= 0), or make the caller a " \
      "member.")                                                                                   \
  CAUSE(kUnknown, "unknown", kInconclusive, kNobody)                                               \
  CAUSE(kSlowHost, "slow_host", kSlow, kHost, false)                                               \
  CAUSE(kRankLost, "rank_lost", kFailure, kRank, false)                                            \
  /* Named by a file: a cause of another version, a rule of `lockstep doctor`. */                  \
  CAUSE(kForeign, "", kFailure, kNobody, false)

enum class Cause : std::uint8_t {
#define LOCKSTEP_CAUSE(cause, ...) cause,
  LOCKSTEP_CAUSES(LOCKSTEP_CAUSE)
#undef LOCKSTEP_CAUSE
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

inline constexpr CauseInfo kCauses[] = {
#define LOCKSTEP_CAUSE(cause, name, severity, blame, ...) \
  {Cause::cause, name, Severity::severity, Blame::blame __VA_OPT__(, ) __VA_ARGS__},
    LOCKSTEP_CAUSES(LOCKSTEP_CAUSE)
#undef LOCKSTEP_CAUSE
};

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
