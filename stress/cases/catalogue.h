// Which scenarios there are, and which of them a run is about.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "stress/faults/fault_plan.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::cases {

// "uneven_inputs/case4   2 ranks   join() plus a barrier …", a line each: of $LOCKSTEP_SCENARIOS,
// else installed beside the binary, in its runfiles or in the source tree it was built from.
// kInvalidInput when none is found.
Result<std::string> DescribeCatalogue();

// One run of one scenario.
struct StressCase {
  scenario::Scenario scenario;
  std::string text;  // of its file
  std::uint64_t seed = 0;
  std::vector<faults::PlannedFault> faults;
  std::string label;  // unique in the run: "uneven_inputs/case4", "…/case4 seed 7"
};

struct Selection {
  std::vector<StressCase> cases;
  std::vector<std::string> skipped;  // names of those that are not for this number of ranks
  std::vector<std::string> unmet;    // "nccl/…: needs …": those that lack what they are about
};

// What `patterns` name, with `repeat` seeds each, for `ranks` ranks (none: as many as each file
// says). Errors (kInvalidInput): a pattern that names nothing, a mistake in a file, nothing left
// for this number of ranks.
Result<Selection> SelectCases(const std::vector<std::string>& patterns, std::optional<int> ranks,
                              std::uint64_t seed, std::int64_t repeat);

// Skips the cases of which `lacks` is true. If none is left: kUnsupported, as `explain` says of the
// first of them.
Status LeaveOut(Selection& selection, const std::function<bool(const StressCase&)>& lacks,
                const std::function<std::string(const StressCase&)>& explain);
// What happens between hosts cannot happen on one, and their network is interfered with only where
// that is allowed: skips the rest. kUnsupported when nothing is left.
Status LeaveOutHosts(bool single_host, bool network_faults, Selection& selection);
// Moves what this backend cannot show to `unmet`. kUnsupported when nothing is left. Whether there
// is a GPU ("cuda") is told by the workers, of the backend nccl.
Status LeaveOutUnmet(std::string_view backend, Selection& selection);
// The same for what MPI cannot show as it is called here, or (unless `single_host`) not across
// hosts, where it has to connect the ranks before they can be told of a case.
Status LeaveOutForMpi(bool single_host, Selection& selection);
// "3 of 40 cases done, now isolation/kill_init".
std::string ProgressText(std::size_t done, std::size_t cases, const StressCase& next);

// Whether such a line belongs into a log as well, which no terminal shows: that of every tenth
// case, and of many cases each twentieth part of them.
bool StaysInLog(std::size_t done, std::size_t cases);

// Lines for every reason: "not run: a, b: needs …", from "a: needs …" and "b: needs …".
std::string FormatUnmet(const std::vector<std::string>& unmet);

}  // namespace lockstep::stress::cases
