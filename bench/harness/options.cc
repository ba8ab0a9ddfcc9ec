// The options of every kind of benchmark. Those of one kind are its own (measure::Kind).
#include "bench/harness/options.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/argument_parser.h"
#include "core/comm/nccl/choices.h"

namespace lockstep::bench::harness {
namespace {

const std::vector<std::string> kFormats = {"text", "nccl-tests", "gbench", "jsonl",
                                           "csv"};  // by ReportFormat

// The words of the command line, before they mean anything.
struct RawOptions {
  std::string check = "rotate", format = "text", marks;
};

std::string GraphRefusal(const std::string& needs_host) {
  return fmt::format(
      "an iteration of {} needs the host between its collectives; use it with bench_ddp_step, or "
      "with bench_allreduce, whose --model replays the gradient buckets",
      needs_host);
}

void AddNcclOptions(ArgumentParser& parser, const measure::Kind& kind, std::string& marks,
                    comm::nccl::NcclChoices& nccl) {
  parser.Add("--nccl-library=FILE", nccl.library,
             "The libnccl.so.2 in question (default: the dynamic linker's)");
  parser.Add("--ranks-per-gpu=COUNT", nccl.ranks_per_gpu,
             "nccl: so many ranks share a GPU (for tests without regard to speed)");
  if (kind.takes_buffers()) {
    parser.Flag("--nccl-register", nccl.registers, "nccl: register the buffers");
  }
  if (!kind.needs_host().empty()) {
    parser.Refuse("--cuda-graph", GraphRefusal(kind.needs_host()));
  } else if (!kind.has_graph_option()) {
    parser.Flag("--cuda-graph", nccl.graphs,
                "nccl: an iteration is captured once and replayed as a CUDA graph");
  }
  marks = comm::nccl::NcclChoicesFromEnvironment(kind.marks_device()).marks ? "on" : "off";
  parser
      .Add(
          "--device-marks=WORD", marks,
          "nccl: the GPU marks when it begins and ends a collective, to tell where it hangs (on or "
          "off; a call takes some microseconds more)")
      .OneOf({"on", "off"})
      .ShowDefault();
  parser.Renamed("--no-device-marks", "--device-marks=off");
}

void AddMeasureOptions(ArgumentParser& parser, const measure::Kind& kind, RawOptions& raw,
                       BenchOptions& options) {
  plan::BenchSpec& spec = options.spec;
  parser.Add("-n,--iters=COUNT", spec.iterations,
             "Fixed number of iterations (default: rounds until --precision)");
  parser.Add("-w,--warmup_iters=COUNT", spec.warmup, "Warm-up iterations with -n (default 5)");
  parser
      .Add("--precision=SHARE", spec.precision,
           "Half width of the median's 95 % interval at which a case stops")
      .ShowDefault();
  parser
      .Add("--drift=SHARE", spec.drift,
           "Half width added for drift slower than a sweep (see scripts/check_coverage)")
      .ShowDefault();
  parser.Add(
      "--time-budget=TIME", spec.time_budget_seconds,
      "Time for the whole run (also ends -n; default: at most 50 s, by the cases; none for -n)");
  if (kind.takes_buffers()) {
    parser
        .Add("-c,--check=WORD", raw.check,
             "Comparison of results (0 or off: none; rotate: every element, behind a rewritten "
             "window that rotates; 1 or full: every element, all rewritten and poisoned)")
        .ShowDefault();
  } else {
    parser.Refuse("-c,--check", "this benchmark moves no data whose comparison could be chosen");
  }
  parser
      .Add("-T,--timeout=TIME", spec.deadline_seconds, "Silence of a rank that is taken for a hang")
      .ShowDefault();
  parser.Add("--seed=SEED", spec.seed, "Seed of all that is random (data, and the order of rounds)")
      .ShowDefault();
  parser.Add("--backend=WORD", spec.backend, "Communication library (mpi, gloo, nccl or null)")
      .ShowDefault();
  AddNcclOptions(parser, kind, raw.marks, spec.nccl);
  parser.Flag("!--no-gpu-samples", options.gpu_samples,
              "Do not ask the GPUs' driver once a second for utilization, clocks, power …");
  parser.Add("--output=FILE", options.output,
             "File to write (the result; default: below results/runs)");
  parser
      .Add("--format=WORD", raw.format,
           "Form of what is printed (text, nccl-tests, gbench, jsonl or csv)")
      .OneOf(kFormats)
      .WordRenamed("table", "text")
      .ShowDefault();
  parser.Flag("--wide", options.wide, "All columns in the table");
  parser.Flag("!--no-progress", options.progress, "No progress line (and no plan before it)");
}

Status ReadCheck(const std::string& word, plan::CheckMode& check) {
  if (word == "rotate") {
    check = plan::CheckMode::kRotate;
  } else if (word == "0" || word == "off") {
    check = plan::CheckMode::kOff;
  } else if (word == "full" || word.find_first_not_of("0123456789") == std::string::npos) {
    check = plan::CheckMode::kFull;
  } else {
    return InvalidInput("-c: '{}' is none of 0, 1, off, rotate, full", word);
  }
  return OkStatus();
}

// Google Benchmark parses its own flags later; a display format of its own selects its reporter.
void TakeBenchmarkFlags(std::vector<std::string>& arguments, BenchOptions& options,
                        RawOptions& raw) {
  std::erase_if(arguments, [&](const std::string& argument) {
    if (!argument.starts_with("--benchmark_")) return false;
    options.benchmark_flags.push_back(argument);
    if (argument.starts_with("--benchmark_format")) raw.format = "gbench";
    return true;
  });
}

// Graphs hold what a device does, and nothing of the host's.
Status CheckGraphs(const measure::Kind& kind, const plan::BenchSpec& spec) {
  if (!spec.nccl.graphs) return OkStatus();
  if (spec.backend != "nccl") {
    return InvalidInput(
        "--cuda-graph: the backend {} has no streams of CUDA to capture; give --backend=nccl",
        spec.backend);
  }
  const std::string needs_host = kind.needs_host();
  if (needs_host.empty()) return OkStatus();
  return InvalidInput("--cuda-graph: " + GraphRefusal(needs_host));
}

}  // namespace

Result<CommandLine> ParseCommandLine(measure::Kind& kind, int argc, const char* const* argv) {
  BenchOptions options;
  options.spec.nccl = comm::nccl::NcclChoicesFromEnvironment();
  RawOptions raw;
  ArgumentParser parser{kind.description(), kind.name()};
  parser.Footer(
      "--benchmark_filter, --benchmark_list_tests, --benchmark_repetitions, --benchmark_format, "
      "--benchmark_out and the\nother options of Google Benchmark's reporters work too. Exit "
      "codes: 0 pass, 1 the system under test failed,\n2 usage, 3 inconclusive, 4 environment, 10 "
      "a defect of Lockstep.");
  kind.AddOptions(parser);
  AddMeasureOptions(parser, kind, raw, options);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  TakeBenchmarkFlags(arguments, options, raw);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> text, parser.Parse(arguments));
  if (text) return CommandLine{std::nullopt, *text};
  const auto format = std::ranges::find(kFormats, raw.format) - kFormats.begin();
  options.format = static_cast<measure::ReportFormat>(format);
  if (options.wide && options.format != measure::ReportFormat::kTable) {
    return InvalidInput("--wide is about the table, and --format={} is asked for; leave one out",
                        raw.format);
  }
  // It says nothing of other backends, nor may it make their plans differ.
  if (options.spec.backend == "nccl") options.spec.nccl.marks = raw.marks == "on";
  LOCKSTEP_RETURN_IF_ERROR(ReadCheck(raw.check, options.spec.check));
  LOCKSTEP_RETURN_IF_ERROR(kind.ReadOptions(parser, options.format, options.spec));
  LOCKSTEP_RETURN_IF_ERROR(CheckGraphs(kind, options.spec));
  // Agents ask the library, too.
  LOCKSTEP_RETURN_IF_ERROR(comm::nccl::ExportNcclChoices(options.spec.nccl));
  return CommandLine{std::move(options), ""};
}

}  // namespace lockstep::bench::harness
