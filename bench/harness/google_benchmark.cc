// Two passes over Google Benchmark's registry. The first one runs nothing and tells which cases the
// flags select. The second one replays finished samples into its reporters.
#include "bench/harness/google_benchmark.h"

#include <benchmark/benchmark.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>

#include "core/base/fd.h"
#include "results/report/exports/exports.h"
#include "results/report/exports/sample_times.h"

namespace lockstep::bench::harness {
namespace {

namespace exports = results::report::exports;

// Swallows everything: the selection pass reports nothing.
class SilentReporter : public benchmark::BenchmarkReporter {
 public:
  SilentReporter() {
    SetOutputStream(&sink_);
    SetErrorStream(&sink_);
  }
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}

 private:
  std::ostringstream sink_;
};

// Reports a case under its own name: without the iteration count in it, compare.py finds the same
// case in another run.
template <typename Reporter>
class PlainNames : public Reporter {
 public:
  using Runs = std::vector<benchmark::BenchmarkReporter::Run>;
  void ReportRuns(const Runs& runs) override {
    Runs renamed = runs;
    for (auto& run : renamed) {
      run.run_name.iterations.clear();
      run.run_name.time_type.clear();
      run.run_name.repetitions.clear();
    }
    Reporter::ReportRuns(renamed);
  }
};

std::string ValueOf(const std::vector<std::string>& flags, const std::string& name) {
  for (const std::string& flag : flags) {
    if (flag == name) return "true";
    if (flag.starts_with(name + "=")) return flag.substr(name.size() + 1);
  }
  return "";
}

// The reporters print nan of CSV and console as they are.
std::unique_ptr<benchmark::BenchmarkReporter> ReporterFor(const std::string& format) {
  if (format == "console") return std::make_unique<PlainNames<benchmark::ConsoleReporter>>();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  if (format == "csv") return std::make_unique<PlainNames<benchmark::CSVReporter>>();
#pragma GCC diagnostic pop
  return std::make_unique<PlainNames<benchmark::JSONReporter>>();
}

// Without `file`, no --benchmark_out: Google Benchmark empties that file whenever it runs anything.
Status Initialize(const std::string& program, const std::vector<std::string>& flags, bool file) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), flags.begin(), flags.end());
  words.push_back("--benchmark_out=" + (file ? ValueOf(flags, "--benchmark_out") : ""));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(words.size());
  for (const char* name : {"--benchmark_format", "--benchmark_out_format"}) {
    const std::string format = ValueOf(flags, name);
    if (format.empty() || format == "json" || format == "console" || format == "csv") continue;
    return InvalidInput("{}: '{}' is none of console, json, csv", name, format);
  }
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1) {
    return InvalidInput("{}: Google Benchmark knows no such option or value", argv[1]);
  }
  return OkStatus();
}

// The finished samples of one case, one entry a repetition.
using Repetitions = std::vector<const results::store::CaseRecord*>;

void Replay(benchmark::State& state, const results::store::CaseRecord& record) {
  if (record.summary.iterations == 0) {
    const auto& findings = record.judgement.findings;
    const std::string why =
        findings.empty() ? record.summary.stopped_by : findings.front().headline.text();
    state.SkipWithError(why.c_str());
    return;
  }
  const double rows = static_cast<double>(exports::SlowestNs(record.samples).size());
  const double seconds = rows == 0 ? 0 : exports::MeasuredNs(record.samples) / rows * 1e-9;
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(seconds);
  for (const auto& [name, value] : exports::GoogleBenchmarkCounters(record.summary)) {
    if (std::isfinite(value)) state.counters[name] = value;
  }
}

void Register(const std::string& name, const Repetitions& repetitions) {
  std::int64_t iterations = std::max<std::int64_t>(repetitions.front()->summary.iterations, 1);
  for (const results::store::CaseRecord* record : repetitions) {
    if (record->summary.iterations > 0) {
      iterations = std::min(iterations, record->summary.iterations);
    }
  }
  auto next = std::make_shared<std::size_t>(0);
  benchmark::RegisterBenchmark(name.c_str(),
                               [repetitions, next](benchmark::State& state) {
                                 Replay(state, *repetitions[(*next)++ % repetitions.size()]);
                               })
      ->Iterations(iterations)
      ->UseManualTime();
}

}  // namespace

Result<BenchmarkSelection> SelectCases(const std::string& program, const plan::Plan& plan,
                                       const std::vector<std::string>& flags, bool prints) {
  LOCKSTEP_RETURN_IF_ERROR(Initialize(program, flags, /*file=*/false));
  BenchmarkSelection selection;
  selection.listed = ValueOf(flags, "--benchmark_list_tests") == "true";
  selection.writes_file = !ValueOf(flags, "--benchmark_out").empty();
  std::map<std::size_t, int> visits;
  benchmark::ClearRegisteredBenchmarks();
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    benchmark::RegisterBenchmark(plan.cases[i].name.c_str(), [i, &visits](benchmark::State& state) {
      ++visits[i];
      state.SkipWithError("not run: asked for its name only");
    });
  }
  SilentReporter silent;
  if (selection.listed) {
    if (prints) benchmark::RunSpecifiedBenchmarks();  // lists to stdout and runs none
    return selection;
  }
  benchmark::RunSpecifiedBenchmarks(&silent);
  for (const auto& [index, count] : visits) {
    selection.cases.push_back(index);
    selection.repetitions = std::max(selection.repetitions, count);
  }
  if (selection.cases.empty()) {
    return InvalidInput(
        "--benchmark_filter={} matches none of the {} cases; see --benchmark_list_tests",
        ValueOf(flags, "--benchmark_filter"), plan.cases.size());
  }
  return selection;
}

Status CheckBenchmarkOut(const std::vector<std::string>& flags) {
  const std::string path = ValueOf(flags, "--benchmark_out");
  if (path.empty()) return OkStatus();
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (file.valid()) return OkStatus();
  return EnvironmentError("--benchmark_out: {} cannot be written ({}); name another file", path,
                          std::strerror(errno));
}

Status ReportWithGoogleBenchmark(const results::store::Run& run,
                                 const std::vector<std::string>& flags, bool display) {
  // It would end this process without a word.
  LOCKSTEP_RETURN_IF_ERROR(CheckBenchmarkOut(flags));
  LOCKSTEP_RETURN_IF_ERROR(Initialize(run.name, flags, /*file=*/true));
  benchmark::ClearRegisteredBenchmarks();
  benchmark::AddCustomContext("lockstep_run", run.id);
  benchmark::AddCustomContext("lockstep_verdict", run.summary_line);
  std::vector<std::pair<std::string, Repetitions>> cases;
  std::map<std::string, std::size_t> place;
  for (const results::store::CaseRecord& record : run.cases) {
    const std::string name = record.name.substr(0, record.name.find("/repetition:"));
    const auto [found, fresh] = place.emplace(name, cases.size());
    if (fresh) cases.push_back({name, {}});
    cases[found->second].second.push_back(&record);
  }
  for (const auto& [name, repetitions] : cases) Register(name, repetitions);
  const std::unique_ptr<benchmark::BenchmarkReporter> shown =
      display ? ReporterFor(ValueOf(flags, "--benchmark_format"))
              : std::make_unique<SilentReporter>();
  std::unique_ptr<benchmark::BenchmarkReporter> file;
  if (!ValueOf(flags, "--benchmark_out").empty()) {
    file = ReporterFor(ValueOf(flags, "--benchmark_out_format"));
  }
  benchmark::RunSpecifiedBenchmarks(shown.get(), file.get(), ".");
  return OkStatus();
}

}  // namespace lockstep::bench::harness
