// The run that a watched launch becomes: no cases, the findings, and its part `watched`. It goes to
// standard error and to a file, so the program's own output stays as it is.
#include "watch/run/reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/base/print_stderr.h"
#include "core/base/run_id.h"
#include "core/base/utc.h"
#include "core/base/version.h"
#include "results/report/report.h"
#include "results/store/store.h"
#include "watch/events/ticks.h"

namespace lockstep::watch::run {

namespace store = results::store;

namespace {

constexpr std::string_view kEnding = ".h5";

// "a.h5" -> "a-2.h5"
std::string Beside(const std::string& path, int number) {
  if (!path.ends_with(kEnding)) return fmt::format("{}-{}", path, number);
  return fmt::format("{}-{}{}", path.substr(0, path.size() - kEnding.size()), number, kEnding);
}

}  // namespace

Reporter::Reporter(const WatchOptions& options)
    : counts_waits_(options.report),
      named_(!options.output.empty() || !options.output_folder.empty()),
      began_ticks_(events::NowTicks()),
      began_ns_(MonotonicNs()) {
  run_.lockstep = ThisVersion();
  run_.name = "watch";
  run_.started_at = UtcNow();
  run_.id = NewRunId();
  run_.command_line = fmt::format("lockstep watch {}-- {}", counts_waits_ ? "--report " : "",
                                  fmt::join(options.command, " "));
  run_.plan_text = "{}";
  run_.plan_hash = "0000000000000000";
  const std::string& folder = options.output_folder;
  path_ = options.output.empty()
              ? store::DefaultRunPath(run_, folder.empty() ? "results/runs" : folder)
              : options.output;
}

Status Reporter::Check() {
  const Status status = store::CheckWritable(path_);
  if (wanted() || status.ok()) return status;
  const char* const chosen = std::getenv("TMPDIR");
  path_ = store::DefaultRunPath(run_, chosen != nullptr && *chosen != 0 ? chosen : "/tmp");
  return store::CheckWritable(path_);
}

void Reporter::Found(const judge::Finding& finding) {
  auto& where = finding.hangs && !finding.proved ? suspected_ : run_.judgement.findings;
  where.push_back({.cause = verdict::FindingCause::Named(judge::NameOf(finding.cause)),
                   .culprits = finding.culprits,
                   .proved = finding.proved,
                   .message = finding.text,
                   .remedy = judge::RemedyOf(finding.cause, finding.in_group),
                   .headline = finding.headline});
}

void Reporter::Found(verdict::Finding finding) {
  (finding.proved ? run_.judgement.findings : suspected_).push_back(std::move(finding));
}

void Reporter::Hung(std::vector<verdict::RankOutcome> ranks) {
  std::vector<verdict::RankOutcome>& known = run_.judgement.outcomes;
  std::erase_if(known, [&](const verdict::RankOutcome& before) {
    return std::ranges::find(ranks, before.rank, &verdict::RankOutcome::rank) != ranks.end();
  });
  std::ranges::move(ranks, std::back_inserter(known));
}

report::Scale Reporter::ScaleNow() const {
  const std::uint64_t ticks = events::NowTicks() - began_ticks_;
  const std::int64_t ns = MonotonicNs() - began_ns_;
  return {began_ticks_, ticks == 0 ? 1 : static_cast<double>(ns) / static_cast<double>(ticks)};
}

Status Reporter::Store(int job, std::optional<store::Watched> watched, int exit_code, bool at_end,
                       bool judged) {
  store::Run run = run_;
  run.watched = std::move(watched);
  run.duration_seconds = SecondsSince(began_ns_);
  run.exit_code = exit_code;
  run.complete = at_end;
  if (at_end && exit_code == 0) {
    run.judgement.outcomes.clear();  // they went on
  } else {
    std::ranges::copy(suspected_, std::back_inserter(run.judgement.findings));
  }
  const bool passes = run.judgement.findings.empty() && exit_code == 0;
  run.verdict = !passes  ? verdict::Verdict::kFail
                : judged ? verdict::Verdict::kPass
                         : verdict::Verdict::kUnknown;
  run.judgement.verdict = run.verdict;
  if (run.judgement.findings.empty()) {
    run.summary_line = exit_code != 0 ? fmt::format("exit code {}, no finding", exit_code)
                       : run.watched
                           ? fmt::format("{} ranks, no finding", run.watched->ranks.size())
                           : "no finding";
    if (passes && !judged) run.summary_line += "; not all was watched";
  }
  if (at_end) PrintStderr("{}", results::report::FormatWaits(run));
  const std::string path = job == 1 ? path_ : Beside(path_, job);
  LOCKSTEP_RETURN_IF_ERROR(store::WriteRun(run, path, {.synced = at_end}));
  if (said_.insert(job).second) PrintStderr("lockstep watch: lockstep show {}\n", path);
  return OkStatus();
}

}  // namespace lockstep::watch::run
