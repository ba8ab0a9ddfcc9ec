// What became of a rank, and why: the words of every report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/journal/event.h"
#include "core/verdict/cause.h"
#include "core/verdict/headline.h"

namespace lockstep::verdict {

enum class Outcome : std::uint8_t {
  kFinished,
  kFailed,   // reported an error, or exited with a code other than 0
  kCrashed,  // ended by a signal of its own making (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL)
  kKilled,   // ended by a signal from outside
  kStopped,  // stopped (SIGSTOP) and not continued
  kHung,     // alive, and without progress until the deadline or provably for ever
  kCorrupt,  // finished with wrong data
};
std::string_view NameOf(Outcome outcome);

enum class Verdict : std::uint8_t { kPass, kFail, kUnknown };
std::string_view NameOf(Verdict verdict);
ExitCode ExitCodeOf(Verdict verdict);  // 0 pass, 1 fail, 3 unknown

// One rank's part in one case or launch.
struct RankOutcome {
  int rank = 0;
  Outcome outcome = Outcome::kFinished;
  int exit_code = 0;  // kFailed by exit
  int signal = 0;     // kCrashed, kKilled, kStopped
  // Where it was: "all_reduce 50 (sequence 101 of communicator 0) f32 x 256 sum", "connecting", …
  std::string where = {};
  double seconds_silent = 0;  // since its last journal event
  std::string evidence = {};  // what the operating system says: state, system call, stack
};

// A cause with its culprits and proof.
struct Finding {
  FindingCause cause = {};
  std::vector<int> culprits = {};
  bool proved = false;       // otherwise suspected: all evidence is silence
  std::string message = {};  // one line, the details: calls in full, who else, since when
  std::string remedy = {};   // one sentence
  // The collective that it is about, if it is about one.
  std::optional<journal::JournalEvent> operation = std::nullopt;
  // Of a specific cause: the general findings that it explains.
  std::vector<Finding> evidence = {};
  Headline headline = {};  // what a person reads first
};

// The judgement of one interruption of a launch, or of a case.
struct Judgement {
  Verdict verdict = Verdict::kUnknown;
  std::vector<RankOutcome> outcomes;  // one a rank
  std::vector<Finding> findings;      // the most specific first
};

}  // namespace lockstep::verdict
