// The run that a watched launch becomes: no cases, the findings, and its part `watched`. It goes to
// standard error and to a file, so the program's own output stays as it is.
#include "watch/run/reporter.h"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/base/run_id.h"
#include "core/base/utc.h"
#include "core/base/version.h"
#include "results/report/waits.h"
#include "results/store/store.h"
#include "watch/events/ticks.h"

namespace lockstep::watch::run {

namespace store = results::store;

namespace {

constexpr std::string_view kEnding = ".h5";

// "a.h5" -> "a-2.h5"
std::string Beside(const std::string& path, int number) {
  return fmt::format("{}-{}{}", path.substr(0, path.size() - kEnding.size()), number, kEnding);
}

}  // namespace

Reporter::Reporter(const std::vector<std::string>& command, const std::string& asked)
    : began_ticks_(events::NowTicks()), began_ns_(MonotonicNs()) {
  run_.lockstep = ThisVersion();
  run_.name = "watch";
  run_.started_at = UtcNow();
  run_.id = NewRunId();
  run_.command_line = fmt::format("lockstep watch --report -- {}", fmt::join(command, " "));
  run_.plan_text = "{}";
  run_.plan_hash = "0000000000000000";
  path_ = asked.ends_with(kEnding) ? asked : store::DefaultRunPath(run_, asked);
}

Status Reporter::Check() const { return store::CheckWritable(path_); }

void Reporter::Found(const judge::Finding& finding) {
  run_.judgement.findings.push_back(
      {.cause = verdict::FindingCause::Named(judge::NameOf(finding.cause)),
       .culprits = finding.culprits,
       .proved = finding.proved,
       .message = finding.text,
       .remedy = judge::RemedyOf(finding.cause, finding.in_group),
       .headline = finding.headline});
}

report::Scale Reporter::ScaleNow() const {
  const std::uint64_t ticks = events::NowTicks() - began_ticks_;
  const std::int64_t ns = MonotonicNs() - began_ns_;
  return {began_ticks_, ticks == 0 ? 1 : static_cast<double>(ns) / static_cast<double>(ticks)};
}

Status Reporter::Store(int job, store::Watched watched, int exit_code, bool at_end) {
  store::Run run = run_;
  run.watched = std::move(watched);
  run.duration_seconds = static_cast<double>(MonotonicNs() - began_ns_) * 1e-9;
  run.exit_code = exit_code;
  const bool passes = run.judgement.findings.empty() && exit_code == 0;
  run.verdict = passes ? verdict::Verdict::kPass : verdict::Verdict::kFail;
  run.judgement.verdict = run.verdict;
  if (run.judgement.findings.empty()) {
    run.summary_line = exit_code == 0
                           ? fmt::format("{} ranks, no finding", run.watched->ranks.size())
                           : fmt::format("exit code {}, no finding", exit_code);
  }
  if (at_end) fmt::print(stderr, "{}", results::report::FormatWaits(run));
  const std::string path = job == 1 ? path_ : Beside(path_, job);
  LOCKSTEP_RETURN_IF_ERROR(store::WriteRun(run, path));
  if (at_end) fmt::print(stderr, "lockstep watch: lockstep show {}\n", path);
  return OkStatus();
}

}  // namespace lockstep::watch::run
