// A finding goes to stderr first, because whoever ends the launch may end this process, too. The
// result file follows at once where ranks stand. Where the program goes on, the file is written
// once a second at most, so that the rings of its ranks do not fill meanwhile.
#include "watch/run/teller.h"

#include <fmt/format.h>
#include <signal.h>

#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/print_stderr.h"
#include "results/report/findings.h"
#include "watch/run/preloadable.h"

namespace lockstep::watch::run {
namespace {

constexpr std::int64_t kBetweenSavesNs = 1'000'000'000;
constexpr double kWhereSeconds = 0.7;  // Open MPI sends SIGKILL a second after SIGTERM
constexpr int kStillRuns = 1;          // the exit code in a file that is written before the end

std::string WhyNothingWasSeen(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    const std::string why = WhyNotPreloaded(word);
    if (!why.empty()) return fmt::format("{} is not watched: {}", word, why);
  }
  return "no program of MPI, gloo or NCCL was seen";
}

}  // namespace

void Teller::Print(const judge::Finding& finding, const Job& job) {
  ++findings_;
  unsaved_ = true;
  urgent_ = urgent_ || finding.hangs;
  reporter_->Found(finding);
  const std::string& headline = finding.headline.text();
  std::string details = headline == finding.text ? "" : "  " + finding.text + "\n";
  if (finding.hangs) {
    for (const std::string& rank : job.StuckRanks()) details += "  " + rank + "\n";
  }
  PrintStderr("lockstep watch: {}{} ({}): {}\n{}  -> {}\n", finding.hangs ? "HUNG, " : "",
              judge::NameOf(finding.cause), finding.proved ? "proved" : "suspected", headline,
              details, judge::RemedyOf(finding.cause, finding.in_group));
  Note(judge::NameOf(finding.cause), finding.proved, finding.hangs, finding.text);
}

void Teller::Note(std::string_view cause, bool proved, bool hangs, const std::string& text) const {
  if (options_.findings.empty()) return;
  std::ofstream file(options_.findings, std::ios::app);
  file << cause << '\t' << (proved ? "proved" : "suspected") << '\t' << (hangs ? "hung" : "runs")
       << '\t' << text << '\n';
}

void Teller::TellFlight(const flight::FlightDiagnosis& diagnosis) {
  const std::vector<verdict::Finding>& findings = diagnosis.judgement.findings;
  if (diagnosis.judgement.verdict != verdict::Verdict::kFail || findings.empty()) return;
  // The same silence, or one like it: told once.
  if (findings.front().headline.text() == told_by_flight_) return;
  told_by_flight_ = findings.front().headline.text();
  for (const verdict::Finding& finding : findings) {
    ++findings_;
    flight_suspicions_ += finding.proved ? 0 : 1;
    PrintStderr("lockstep watch: {} ({}, by PyTorch's Flight Recorder): {}\n  {}\n  -> {}\n",
                finding.cause.name(), finding.proved ? "proved" : "suspected",
                finding.headline.text(), finding.message, finding.remedy);
    Note(finding.cause.name(), finding.proved, true, finding.message);
    reporter_->Found(finding);
  }
  reporter_->Hung(diagnosis.judgement.outcomes);
  unsaved_ = true;
  urgent_ = true;
}

void Teller::Tell(Job& job, bool stands) {
  for (const judge::Finding& finding : job.Tell()) Print(finding, job);
  if (stands && findings_ > 0) TellStanding(job);
}

void Teller::TellStanding(Job& job) {
  unsaved_ = true;
  urgent_ = true;
  const bool stacks = options_.on_hang == "stacks";
  verdict::Judgement judgement;
  judgement.outcomes = job.Hung(stacks);
  if (stacks) PrintStderr("{}\n", results::report::FormatUnfinished(judgement));
  reporter_->Hung(std::move(judgement.outcomes));
}

void Teller::SayOnce(const Status& problem) {
  if (problem.ok() || std::exchange(said_, problem.message()) == problem.message()) return;
  PrintStderr("lockstep watch: {}\n", problem.message());
}

// What fails here does not change the program's exit code.
void Teller::Store(const Jobs& jobs, int code, bool at_end) {
  if (!reporter_->wanted() && !reporter_->found()) return;
  if (!reporter_->wanted()) {
    const Status writable = reporter_->Check();
    if (!writable.ok()) return SayOnce(writable);
  }
  const report::Scale scale = reporter_->ScaleNow();
  int number = 0;
  const bool judged = ranks_ > 0 && complete_;
  if (reporter_->counts_waits()) {
    for (const auto& [name, job] : jobs) {
      SayOnce(reporter_->Store(++number, job->Waited(scale), code, at_end, judged));
    }
  }
  // All findings are in one file; Flight Recorder's need no job.
  if (number == 0 && (reporter_->found() || reporter_->named())) {
    SayOnce(reporter_->Store(1, std::nullopt, code, at_end, judged));
  }
  saved_ns_ = MonotonicNs();
  unsaved_ = false;
  urgent_ = false;
}

void Teller::Save(const Jobs& jobs) {
  const bool seldom = !reporter_->counts_waits() && MonotonicNs() - saved_ns_ >= kBetweenSavesNs;
  if (unsaved_ && (urgent_ || seldom)) Store(jobs, kStillRuns, false);
}

void Teller::TellWhereabouts(const Jobs& jobs) {
  if (findings_ > 0 || std::exchange(said_where_, true)) return;
  const Deadline deadline = Deadline::AfterSeconds(kWhereSeconds);
  std::string text;
  for (const auto& [name, job] : jobs) {
    for (const std::string& rank : job->Whereabouts(deadline)) text += "  " + rank + "\n";
  }
  if (!text.empty()) PrintStderr("lockstep watch: when the launch ended\n{}", text);
}

void Teller::LastWords(const Jobs& jobs) {
  if (std::exchange(ended_, true)) return;
  TellWhereabouts(jobs);
  Store(jobs, 128 + SIGTERM, false);
}

void Teller::Count(const Job& job) {
  ranks_ += job.size();
  events_ += job.events();
  complete_ = complete_ && job.complete();
  for (const events::Call call : job.not_followed()) {
    not_followed_.insert(events::FactsOf(call).name);
  }
}

void Teller::Summarize(const Jobs& jobs, int code) {
  for (const auto& [name, job] : jobs) Count(*job);
  if (ranks_ == 0 && findings_ == 0) {
    PrintStderr("lockstep watch: {}\n", WhyNothingWasSeen(options_.command));
  } else if (findings_ == 0) {
    PrintStderr("lockstep watch: {} ranks, {} events, no finding{}{}{}\n", ranks_, events_,
                complete_ ? "" : "; not all was watched",
                not_followed_.empty() ? "" : "; not followed: ", fmt::join(not_followed_, ", "));
  } else if (code == 0 && reporter_->only_suspected()) {
    PrintStderr("lockstep watch: the launch ended well: what was suspected was no hang\n");
  }
  if (code != 0) TellWhereabouts(jobs);
}

void Teller::SaveAtEnd(const Jobs& jobs, int code) { Store(jobs, code, true); }

}  // namespace lockstep::watch::run
