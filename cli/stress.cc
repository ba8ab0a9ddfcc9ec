// `lockstep stress --ranks=RANKS …`: stress with a launch for every case, and one result of them
// all.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/launch.h"
#include "cli/subcommand.h"
#include "core/base/file_text.h"
#include "core/base/temporary_folder.h"
#include "core/base/version.h"
#include "core/base/wrap.h"
#include "core/comm/backends.h"
#include "core/verdict/trace.h"
#include "results/report/report.h"
#include "results/report/trials.h"
#include "results/store/lifetimes.h"
#include "results/store/run_file.h"
#include "results/store/store.h"
#include "session/progress_line.h"
#include "stress/cases/catalogue.h"
#include "stress/harness/options.h"
#include "stress/harness/record.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kLaunchSeconds = 60;  // starting and leaving, beside the limit of the case

struct StressArguments {
  int ranks = 0;
  std::string launcher;
  std::vector<std::string> rest;  // the options of stress
};

// The `stress` that belongs to this program: installed beside it, in the build tree, or in PATH.
std::string FindStress() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& path :
       {own.parent_path() / "lockstep-stress", own.parent_path() / "../stress/stress"}) {
    if (fs::is_regular_file(path, error)) return fs::weakly_canonical(path, error);
  }
  return "lockstep-stress";
}

std::vector<std::string> WordsOf(const StressArguments& options,
                                 const stress::harness::StressOptions& stress,
                                 const stress::cases::StressCase& stress_case,
                                 const TemporaryFolder& folder) {
  std::vector<std::string> words;
  std::istringstream launcher(options.launcher);
  for (std::string word; launcher >> word;) words.push_back(word);
  for (const std::string& word :
       {std::string("-n"), fmt::format("{}", options.ranks), FindStress(),
        "--scenario=" + stress_case.scenario.origin, "--backend=" + stress.backend,
        fmt::format("--seed={}", stress_case.seed), fmt::format("-T{}", stress.deadline_seconds),
        fmt::format("--limit={}", stress.limit_seconds), std::string("--no-progress"),
        "--output=" + folder.File("run.h5"), "--verdicts=" + folder.File("run.json")}) {
    words.push_back(word);
  }
  if (stress.allow_network_faults) words.emplace_back("--allow-network-faults");
  if (!stress.gpu_samples) words.emplace_back("--no-gpu-samples");
  return words;
}

// What stress itself said at the end, without its name; empty: nothing.
std::string ErrorIn(const std::string& log) {
  constexpr std::string_view kName = "lockstep-stress: ";
  std::string error;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("lockstep-stress: note: ")) continue;
    if (line.starts_with(kName)) error = line.substr(kName.size());
  }
  return error;
}

// A launch that left no file: what it said, or its launcher, is all there is.
results::store::CaseRecord LostCase(const stress::cases::StressCase& stress_case,
                                    const stress::harness::StressOptions& stress, int exit_code,
                                    const std::string& log) {
  std::string last;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" -\t") != std::string::npos) last = line;
  }
  if (const std::string error = ErrorIn(log); !error.empty()) last = error;
  results::store::CaseRecord record;
  record.name = stress_case.label;
  record.backend = stress.backend;
  record.device = "host";
  record.ranks = stress_case.scenario.ranks;
  record.samples.ranks = record.ranks;
  record.summary.stopped_by = "lost";
  record.settings = {{"scenario", stress_case.scenario.name},
                     {"seed", fmt::format("{}", stress_case.seed)}};
  record.judgement.verdict = verdict::Verdict::kUnknown;
  record.trial.emplace();
  record.trial->why = fmt::format("the launch left no result (exit code {}): {}", exit_code,
                                  last.empty() ? "it said nothing" : last);
  return record;
}

// What all launches came to.
struct Collected {
  results::store::Run run;
  Json cases = Json::array();
  std::string traces;                   // of the cases that did not pass
  std::vector<std::string> unmet = {};  // what launches said that they cannot show
};

void Add(results::store::Run launch, const stress::cases::StressCase& stress_case, Collected& all) {
  const auto index = static_cast<int>(all.run.cases.size());
  results::store::CaseRecord& record = launch.cases.front();
  record.name = stress_case.label;
  if (record.judgement.verdict != verdict::Verdict::kPass) {
    all.traces += results::report::FormatTrialDetails(record);
    const Result<std::vector<results::store::Lifetime>> lifetimes =
        results::store::LifetimesOf(launch, "");
    if (lifetimes.ok() && !lifetimes->empty()) {
      all.traces += verdict::FormatTrace(verdict::TraceOf(
          lifetimes->front().evidence, results::store::SettingOf(launch), record.judgement));
    }
  }
  if (index == 0) all.run.environment = launch.environment;
  all.run.duration_seconds += launch.duration_seconds;
  for (results::store::RankHistory& history : launch.history) {
    history.lifetime = index;
    all.run.history.push_back(std::move(history));
  }
  for (results::store::EvidenceRecord& evidence : launch.evidence) {
    evidence.lifetime = index;
    all.run.evidence.push_back(std::move(evidence));
  }
  all.run.cases.push_back(std::move(record));
}

// "LABEL: reason", whether or not the error names the case itself.
std::string Unmet(const std::string& label, const std::string& error) {
  const std::string named = label + ": ";
  const std::size_t at = error.find(named);
  return at == std::string::npos ? named + error : error.substr(at);
}

// It understood the case, and says why it is nothing for this launch.
bool IsUnmet(const LaunchEnd& end, const std::string& log) {
  return end.exit_code == static_cast<int>(ExitCode::kUsage) && !ErrorIn(log).empty();
}

Status RunAll(const StressArguments& options, const stress::harness::StressOptions& stress,
              const stress::cases::Selection& selection, Collected& all) {
  const TemporaryFolder folder(fs::temp_directory_path(), "lockstep-stress");
  if (folder.path().empty()) {
    return EnvironmentError("no directory could be made in '{}'; set TMPDIR to a writable one",
                            fs::temp_directory_path().string());
  }
  session::ProgressLine progress(stress.progress);
  for (const stress::cases::StressCase& stress_case : selection.cases) {
    const std::size_t done = all.run.cases.size() + all.unmet.size();
    const std::string line = stress::cases::ProgressText(done, selection.cases.size(), stress_case);
    if (stress::cases::StaysInLog(done, selection.cases.size())) {
      progress.ShowStep(line, "lockstep stress: ");
    } else {
      progress.Show(line);
    }
    std::error_code ignored;
    for (const char* name : {"run.h5", "run.json"}) fs::remove(folder.File(name), ignored);
    const LaunchOrder order{WordsOf(options, stress, stress_case, folder), folder.File("log"),
                            folder.File("run.h5"), stress.limit_seconds + kLaunchSeconds};
    LOCKSTEP_ASSIGN_OR_RETURN(const LaunchEnd end, RunLaunch(order));
    if (end.interrupted) {
      all.run.complete = false;
      break;
    }
    Result<results::store::Run> launch = results::store::ReadRun(folder.File("run.h5"));
    const Json json = Json::parse(TextOf(folder.File("run.json")), nullptr, false);
    if (launch.ok() && launch->cases.size() == 1) {
      Add(*std::move(launch), stress_case, all);
      if (json.is_object()) all.cases.push_back(json["cases"][0]);
    } else if (IsUnmet(end, TextOf(folder.File("log")))) {
      all.unmet.push_back(Unmet(stress_case.label, ErrorIn(TextOf(folder.File("log")))));
    } else {
      all.run.cases.push_back(
          LostCase(stress_case, stress, end.exit_code, TextOf(folder.File("log"))));
      all.traces += results::report::FormatTrialDetails(all.run.cases.back());
      all.cases.push_back({{"name", stress_case.scenario.name},
                           {"backend", stress.backend},
                           {"ranks", options.ranks},
                           {"seed", stress_case.seed},
                           {"verdict", "unknown"},
                           {"why", all.run.cases.back().trial->why}});
    }
  }
  if (all.run.cases.empty() && !all.unmet.empty()) return Unsupported(all.unmet.front());
  return OkStatus();
}

Result<stress::harness::StressOptions> ParseRest(const std::vector<std::string>& rest) {
  std::vector<const char*> argv = {"lockstep stress"};
  for (const std::string& word : rest) argv.push_back(word.c_str());
  LOCKSTEP_ASSIGN_OR_RETURN(
      const stress::harness::StressCommandLine line,
      stress::harness::ParseStressCommandLine(static_cast<int>(argv.size()), argv.data()));
  if (!line.options || line.options->list) {
    return InvalidInput("for --list and the options of stress itself, call lockstep-stress");
  }
  if (line.options->backend == "sim") {
    return InvalidInput("--backend=sim launches nothing; call lockstep-stress --backend=sim");
  }
  return *line.options;
}

// Of the MPI that stress was built for. Hydra shares processors without being told.
// Stress measures no latencies: what makes more ranks than processors bearable is always right.
std::string DefaultLauncher() {
  const auto mpi = comm::FindBackend("--backend", "mpi");
  if (mpi.ok() && (*mpi)->version().starts_with("MPICH")) {
    // Debian's name beside Open MPI's, which is then plain mpiexec.
    return access("/usr/bin/mpiexec.mpich", X_OK) == 0 ? "mpiexec.mpich" : "mpiexec";
  }
  return fmt::format("mpirun{} --oversubscribe --bind-to none --mca mpi_yield_when_idle 1",
                     geteuid() == 0 ? " --allow-run-as-root" : "");
}

Result<ExitCode> Stress(const StressArguments& options, const std::string& command_line) {
  LOCKSTEP_ASSIGN_OR_RETURN(const stress::harness::StressOptions stress, ParseRest(options.rest));
  LOCKSTEP_ASSIGN_OR_RETURN(
      stress::cases::Selection selection,
      stress::cases::SelectCases(stress.scenarios, options.ranks, stress.seed, stress.repeat));
  // Usually all ranks are started here.
  const bool here = options.launcher == DefaultLauncher();
  if (here) LOCKSTEP_RETURN_IF_ERROR(stress::cases::LeaveOutHosts(true, false, selection));
  LOCKSTEP_RETURN_IF_ERROR(stress::cases::LeaveOutUnmet(stress.backend, selection));
  // Launches over several hosts say themselves what they cannot show.
  if (stress.backend == "mpi")
    LOCKSTEP_RETURN_IF_ERROR(stress::cases::LeaveOutForMpi(true, selection));
  Collected all;
  all.run = stress::harness::NewStressRun(stress, selection, command_line);
  results::store::RunFile file(stress.output.empty()
                                   ? results::store::DefaultRunPath(all.run, "results/runs")
                                   : stress.output);
  LOCKSTEP_RETURN_IF_ERROR(file.Check());
  if (!stress.verdicts.empty())
    LOCKSTEP_RETURN_IF_ERROR(results::store::CheckWritable(stress.verdicts));
  const SignalsNoted noted;
  LOCKSTEP_RETURN_IF_ERROR(RunAll(options, stress, selection, all));
  stress::harness::ConcludeCases(selection.cases.size() - all.unmet.size(), all.run);
  const Status stored = file.Store(all.run);
  fmt::print("{}{}", results::report::FormatHead(all.run),
             results::report::FormatTrials(all.run.cases));
  if (!selection.skipped.empty()) {
    fmt::print("\n{}", Wrap(fmt::format("not for this number of ranks, or hosts: {}",
                                        fmt::join(selection.skipped, ", "))));
  }
  selection.unmet.insert(selection.unmet.end(), all.unmet.begin(), all.unmet.end());
  fmt::print("{}", stress::cases::FormatUnmet(selection.unmet));
  fmt::print("{}", all.traces);
  if (file.saved()) fmt::print("\nresult file: {}\n", OneLine(file.path()));
  LOCKSTEP_RETURN_IF_ERROR(stored);
  const Json json = {{"schema", 1}, {"lockstep", ThisVersionText()}, {"cases", all.cases}};
  LOCKSTEP_RETURN_IF_ERROR(stress::harness::WriteVerdicts(
      stress.verdicts, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"));
  return verdict::ExitCodeOf(all.run.verdict);
}

}  // namespace

Work AddStress(ArgumentParser& parser) {
  auto options = std::make_shared<StressArguments>();
  options->launcher = DefaultLauncher();
  parser.Add("--ranks=COUNT", options->ranks, "Number of ranks (of every launch)")
      .Required()
      .Between(1, 100'000);
  parser.Add("--launcher=COMMAND", options->launcher, "What starts the ranks, without their number")
      .ShowDefault();
  parser.Renamed("-n,--np", "--ranks");
  parser.Footer("All other options are those of lockstep-stress (lockstep-stress --help)");
  parser.KeepUnknown(options->rest);
  return [options] {
    return Stress(*options, fmt::format("lockstep stress --ranks={} {}", options->ranks,
                                        fmt::join(options->rest, " ")));
  };
}

}  // namespace lockstep::cli
