// A rank that prints into a pipe that nobody reads: it waits in write(2) until there is room again.
#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "core/verdict/finders/explanation.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

// The kernel's wait channel names the pipe: a socket, a file or a terminal has another one.
bool WaitsForRoomInPipe(const RankView& view) {
  const std::string_view system = view.evidence->system;
  const std::string_view call = system.substr(0, system.find("; stack: "));
  return OwesProgress(view) && call.starts_with("waiting in write") &&
         call.find("pipe_write]") != call.npos;
}

// Never proved: who reads late reads too.
std::optional<Finding> ExplainBlockedOutput(const Situation& situation,
                                            const std::vector<Mismatch>&, const Finding& general) {
  const Cause silence = general.cause.known();
  const bool one_is_enough = silence == Cause::kTransportStall || silence == Cause::kInitFailure;
  if (general.proved || (silence != Cause::kRankBusy && !one_is_enough)) return std::nullopt;
  Views blocked;
  std::size_t blamed = 0;
  for (const RankView& view : situation.views) {
    if (!WaitsForRoomInPipe(view) || !situation.overdue(view)) continue;
    blocked.push_back(&view);
    if (std::ranges::count(general.culprits, view.rank()) != 0) ++blamed;
  }
  // Another rank that is busy needs another reason.
  if (blocked.empty() || (!one_is_enough && blamed < general.culprits.size())) return std::nullopt;
  Finding finding{
      .cause = Cause::kOutputBlocked, .culprits = RanksOf(blocked), .operation = general.operation};
  const std::string_view waits = Verb(finding.culprits, "waits", "wait");
  finding.headline = Headline("{} {} in write(): nobody reads the pipe", Who(blocked), waits);
  finding.message = fmt::format(
      "{} {} in write() for room in a pipe that nobody reads, for {}; rank {} {}",
      FormatRanks(finding.culprits), waits, Seconds(blocked.front()->evidence->seconds_silent),
      blocked.front()->rank(), WhereOf(*blocked.front()));
  finding.remedy = finding.cause.info().remedy;
  return finding;
}

Explanation blocked_output(Cause::kOutputBlocked, ExplainBlockedOutput);

}  // namespace
}  // namespace lockstep::verdict::finders
