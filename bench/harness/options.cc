#include "bench/harness/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/harness/ddp_options.h"
#include "bench/harness/link_options.h"
#include "bench/harness/load_options.h"
#include "bench/harness/model_buckets.h"
#include "core/base/argument_parser.h"
#include "core/base/units.h"
#include "core/comm/nccl/choices.h"

namespace lockstep::bench::harness {
namespace {

// The words of the command line, before they mean anything.
struct Words {
  std::string begin = "8", end = "64M", step, factor = "2";
  std::string iterations, warmup, root = "0", check, blocking;
  std::vector<std::string> operations = {"sum"}, types;
  std::string deadline = "30", budget, precision = "0.05", drift = "0.08", seed = "1";
  std::string placement, format = "table";
  ModelWords model;
  DdpWords ddp;
  LoadWords load;
  LinkWords links;
  comm::nccl::NcclChoices nccl;
};

// A whole number from a word; CLI11 would accept "7x" of an integer in places, and says less.
Result<std::int64_t> ParseCount(const std::string& option, const std::string& word) {
  const Result<std::int64_t> bytes = ParseBytes(option, word);  // 1K is a fine count too
  if (bytes.ok()) return bytes;
  return InvalidInput(fmt::format("{}: '{}' is not a count", option, word));
}

Result<double> ParseNumber(const std::string& option, const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !std::isfinite(value)) {
    return InvalidInput(fmt::format("{}: '{}' is not a number", option, word));
  }
  return value;
}

void AddSizeOptions(ArgumentParser& parser, Words& words) {
  parser.Add("-b,--minbytes", words.begin, "Smallest size, e.g. 8, 64K").ShowDefault();
  parser.Add("-e,--maxbytes", words.end, "Largest size").ShowDefault();
  parser.Add("-i,--stepbytes", words.step, "Add this to the size instead of multiplying");
  parser.Add("-f,--stepfactor", words.factor, "Multiply the size by this").ShowDefault();
  parser.Add("-r,--root", words.root, "Root rank").ShowDefault();
}

void AddAxisOptions(ArgumentParser& parser, const BenchInfo& info, Words& words) {
  parser
      .Add("-d,--datatype", words.types,
           "Element types: f16 bf16 f32 f64 i8 i32 i64 u8, or all (of these), f8e4m3 f8e5m2 "
           "(default f32)")
      .SplitAtCommas();
  if (collective::InfoOf(info.collective).reduces) {
    parser.Add("-o,--op", words.operations, "Reductions: sum prod min max, or all")
        .SplitAtCommas()
        .ShowDefault();
  }
  parser.Add("--placement", words.placement,
             fmt::format("out, in (send == recv) or both (default {})",
                         info.in_place_by_default ? "in" : "out; both for nccl-tests"));
  parser.Add("-z,--blocking", words.blocking,
             "1: the library's blocking call (default); 0: its non-blocking call; or both");
  if (!info.takes_models) return;
  const bool buckets = collective::InfoOf(info.collective).reduces;
  parser
      .Add("--model", words.model.models,
           fmt::format("{} of these models instead of sizes (give -b or -e for both)",
                       buckets ? "Gradient buckets" : "State and buffers"))
      .SplitAtCommas();
  if (!buckets) return;
  parser.Add("--bucket-cap-mb", words.model.caps, "DDP's bucket_cap_mb, one or several")
      .SplitAtCommas();
  parser.Add("--first-bucket-mb", words.model.first, "Limit of the first bucket");
  parser.Flag("--find-unused", words.model.find_unused, "DDP's find_unused_parameters");
  parser.Flag("--initial", words.model.initial, "The buckets of the first iteration");
}

void AddNcclOptions(ArgumentParser& parser, const BenchInfo& info, Words& words) {
  parser.Add("--nccl-library", words.nccl.library,
             "nccl: the libnccl.so.2 to measure (default: the dynamic linker's)");
  parser.Add("--ranks-per-gpu", words.nccl.ranks_per_gpu,
             "nccl: so many ranks share a GPU, for tests without regard to speed");
  parser.Flag("--nccl-register", words.nccl.registers, "nccl: register the buffers");
  if (info.kind != BenchKind::kDdpSteps) {  // they have both in one run: AddDdpOptions
    parser.Flag("--cuda-graph", words.nccl.graphs,
                "nccl: an iteration's collectives are captured once and replayed as a CUDA graph");
  }
  parser.Flag("!--no-device-marks", words.nccl.marks,
              "cuda: the device does not note what it begins and ends (to see what noting costs)");
}

void AddMeasureOptions(ArgumentParser& parser, const BenchInfo& info, Words& words,
                       BenchOptions& options) {
  parser.Add("-n,--iters", words.iterations,
             "Fixed number of iterations (default: rounds until --precision)");
  parser.Add("-w,--warmup_iters", words.warmup, "Warm-up iterations with -n (default 5)");
  parser
      .Add("--precision", words.precision,
           "Half width of the median's 95 % interval at which a case stops")
      .ShowDefault();
  parser
      .Add("--drift", words.drift,
           "Half width added for drift slower than a sweep (see scripts/check_coverage)")
      .ShowDefault();
  parser.Add("--time-budget", words.budget,
             "Time for the whole sweep, e.g. 20s (default: 6 s, more for large models)");
  parser.Add("-c,--check", words.check,
             "0 or off: none; rotate (default): compare every element, rewrite a rotating "
             "window; 1 or full: rewrite and poison every element too");
  parser.Add("-T,--timeout", words.deadline, "Silence of a rank that is taken for a hang")
      .ShowDefault();
  parser.Add("--seed", words.seed, "Seed of the data and of the order of rounds").ShowDefault();
  parser.Add("--backend", options.spec.backend, "mpi, gloo, nccl or null").ShowDefault();
  AddNcclOptions(parser, info, words);
  parser.Flag("!--no-gpu-samples", options.gpu_samples,
              "Do not ask the GPUs' driver once a second for utilization, clocks, power …");
  parser.Add("--output", options.output, "The result file (default: below results/runs)");
  parser.Add("--format", words.format, "table, nccl-tests, gbench or jsonl").ShowDefault();
  parser.Flag("!--no-progress", options.progress, "No progress line on a terminal");
}

Status ReadSizes(const ArgumentParser& parser, const Words& words, plan::BenchSpec& spec) {
  LOCKSTEP_ASSIGN_OR_RETURN(spec.begin_bytes, ParseBytes("-b", words.begin));
  LOCKSTEP_ASSIGN_OR_RETURN(spec.end_bytes, ParseBytes("-e", words.end));
  if (!words.step.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(spec.step_bytes, ParseBytes("-i", words.step));
    if (spec.step_bytes == 0) return InvalidInput("-i 0: the step must be positive");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(spec.factor, ParseNumber("-f", words.factor));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t root, ParseCount("-r", words.root));
  if (root > std::numeric_limits<int>::max()) {
    return InvalidInput(fmt::format("-r {}: no such rank", root));
  }
  spec.root = static_cast<int>(root);
  const bool sizes_given = parser.Given("-b") || parser.Given("-e") || parser.Given("-i");
  spec.sweep = words.model.models.empty() || sizes_given;
  return OkStatus();
}

Status ReadPlacement(const BenchInfo& info, const Words& words, BenchOptions& options) {
  plan::BenchSpec& spec = options.spec;
  const bool both = words.placement == "both" ||
                    (words.placement.empty() && options.format == ReportFormat::kNcclTests &&
                     collective::InfoOf(info.collective).reduces);
  if (both) {
    spec.in_place = {false, true};
  } else if (words.placement == "in" || (words.placement.empty() && info.in_place_by_default)) {
    spec.in_place = {true};
  } else if (words.placement == "out" || words.placement.empty()) {
    spec.in_place = {false};
  } else {
    return InvalidInput(fmt::format("--placement: '{}' is none of out, in, both", words.placement));
  }
  if (words.blocking.empty() || words.blocking == "1") {
    spec.blocking = {collective::Blocking::kBlocking};
  } else if (words.blocking == "0") {
    spec.blocking = {collective::Blocking::kNonblocking};
  } else if (words.blocking == "both") {
    spec.blocking = {collective::Blocking::kBlocking, collective::Blocking::kNonblocking};
  } else {
    return InvalidInput(fmt::format("-z: '{}' is none of 0, 1, both", words.blocking));
  }
  return OkStatus();
}

// Each once. "all" are those that every library and every GPU reduces, so that it is the same
// everywhere: floats of 8 bits are named.
Result<std::vector<collective::DataType>> ReadTypes(const std::vector<std::string>& words) {
  std::vector<collective::DataType> types;
  const auto add = [&](collective::DataType type) {
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  };
  for (const std::string& word : words) {
    if (word == "all") {
      for (const collective::DataType type : collective::AllDataTypes()) {
        if (!collective::IsFloat8(type)) add(type);
      }
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const collective::DataType type,
                              collective::ParseDataType("-d", word));
    add(type);
  }
  return types;
}

Status ReadAxes(const BenchInfo& info, const Words& words, BenchOptions& options) {
  plan::BenchSpec& spec = options.spec;
  spec.types_given = !words.types.empty();
  if (spec.types_given) {
    LOCKSTEP_ASSIGN_OR_RETURN(spec.types, ReadTypes(words.types));
  }
  spec.reductions.clear();
  for (const std::string& word : words.operations) {
    if (word == "all") {
      spec.reductions = {collective::Reduction::kSum, collective::Reduction::kProd,
                         collective::Reduction::kMin, collective::Reduction::kMax};
      break;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const collective::Reduction reduction,
                              collective::ParseReduction("-o", word));
    spec.reductions.push_back(reduction);
  }
  return ReadPlacement(info, words, options);
}

Status ReadCheck(const Words& words, plan::BenchSpec& spec) {
  if (words.check.empty() || words.check == "rotate") {
    spec.check = plan::CheckMode::kRotate;
  } else if (words.check == "0" || words.check == "off") {
    spec.check = plan::CheckMode::kOff;
  } else if (words.check == "full" ||
             words.check.find_first_not_of("0123456789") == std::string::npos) {
    spec.check = plan::CheckMode::kFull;
  } else {
    return InvalidInput(fmt::format("-c: '{}' is none of 0, 1, off, rotate, full", words.check));
  }
  return OkStatus();
}

Status ReadMeasure(const Words& words, plan::BenchSpec& spec) {
  if (!words.iterations.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(spec.iterations, ParseCount("-n", words.iterations));
  }
  if (!words.warmup.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(spec.warmup, ParseCount("-w", words.warmup));
    if (*spec.warmup > 1'000'000) return InvalidInput("-w: at most 1M warm-up iterations");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(spec.precision, ParseNumber("--precision", words.precision));
  LOCKSTEP_ASSIGN_OR_RETURN(spec.drift, ParseNumber("--drift", words.drift));
  if (!words.budget.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(spec.time_budget_seconds,
                              ParseSeconds("--time-budget", words.budget));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(spec.deadline_seconds, ParseSeconds("-T", words.deadline));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::int64_t seed, ParseCount("--seed", words.seed));
  spec.seed = static_cast<std::uint64_t>(seed);
  return ReadCheck(words, spec);
}

Status ReadFormat(const std::string& word, ReportFormat& format) {
  if (word == "table") {
    format = ReportFormat::kTable;
  } else if (word == "nccl-tests") {
    format = ReportFormat::kNcclTests;
  } else if (word == "gbench") {
    format = ReportFormat::kGoogleBenchmark;
  } else if (word == "jsonl") {
    format = ReportFormat::kJsonLines;
  } else {
    return InvalidInput(
        fmt::format("--format: '{}' is none of table, nccl-tests, gbench, jsonl", word));
  }
  return OkStatus();
}

// Google Benchmark parses its own flags later; a display format of its own selects its reporter.
void TakeBenchmarkFlags(std::vector<std::string>& arguments, BenchOptions& options, Words& words) {
  std::erase_if(arguments, [&](const std::string& argument) {
    if (!argument.starts_with("--benchmark_")) return false;
    options.benchmark_flags.push_back(argument);
    if (argument.starts_with("--benchmark_format")) words.format = "gbench";
    return true;
  });
}

bool ReplaysSteps(const plan::DdpAxes& axes) {
  return std::find(axes.cuda_graph.begin(), axes.cuda_graph.end(), true) != axes.cuda_graph.end();
}

// Graphs hold what a device does, and nothing of the host's.
Status CheckGraphs(const BenchInfo& info, const Words& words, const BenchOptions& options) {
  if (!words.nccl.graphs && !ReplaysSteps(options.spec.ddp)) return OkStatus();
  if (options.spec.backend != "nccl") {
    return InvalidInput(fmt::format(
        "--cuda-graph: the backend {} has no streams of CUDA to capture; give --backend=nccl",
        options.spec.backend));
  }
  const bool state = info.takes_models && !collective::InfoOf(info.collective).reduces &&
                     !words.model.models.empty();
  if (info.kind == BenchKind::kDdpSteps) return OkStatus();
  if (info.kind == BenchKind::kCollectives && !state) return OkStatus();
  return InvalidInput(fmt::format(
      "--cuda-graph: an iteration of {}{} needs the host between its collectives; use it with "
      "bench_ddp_step, or with bench_allreduce, whose --model replays the gradient buckets",
      info.name, state ? " --model" : ""));
}

Status ReadWords(const BenchInfo& info, const ArgumentParser& parser, const Words& words,
                 BenchOptions& options) {
  options.spec.collective = info.collective;
  LOCKSTEP_RETURN_IF_ERROR(ReadFormat(words.format, options.format));
  if (info.kind == BenchKind::kDdpSteps) {
    LOCKSTEP_RETURN_IF_ERROR(ReadMeasure(words, options.spec));
    LOCKSTEP_RETURN_IF_ERROR(ReadDdpWords(words.ddp, options.spec));
    return CheckGraphs(info, words, options);
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckGraphs(info, words, options));
  options.spec.cuda_graph = words.nccl.graphs;
  if (info.kind == BenchKind::kLoads) {
    LOCKSTEP_RETURN_IF_ERROR(ReadMeasure(words, options.spec));
    return ReadLoadWords(words.load, options.spec);
  }
  if (info.kind == BenchKind::kLinks) {
    if (options.format == ReportFormat::kNcclTests) {
      return InvalidInput(
          "--format: nccl-tests has no columns for pairs of ranks; use table, jsonl or gbench");
    }
    LOCKSTEP_RETURN_IF_ERROR(ReadMeasure(words, options.spec));
    return ReadLinkWords(words.links, options.spec);
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadSizes(parser, words, options.spec));
  LOCKSTEP_RETURN_IF_ERROR(ReadAxes(info, words, options));
  LOCKSTEP_RETURN_IF_ERROR(ReadMeasure(words, options.spec));
  if (!info.takes_models) return OkStatus();
  if (!collective::InfoOf(info.collective).reduces) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.spec.models, LoadModels(words.model.models));
    return OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(options.spec.sequences, ModelSequences(words.model));
  return OkStatus();
}

}  // namespace

Result<CommandLine> ParseCommandLine(const BenchInfo& info, int argc, const char* const* argv) {
  BenchOptions options;
  Words words;
  ArgumentParser parser{info.description, info.name};
  parser.Version(info.name + " of Lockstep 0.1");
  parser.Footer(
      "--benchmark_filter, --benchmark_list_tests, --benchmark_repetitions, --benchmark_format, "
      "--benchmark_out and the\nother options of Google Benchmark's reporters work too. Exit "
      "codes: "
      "0 pass, 1 the system under test failed,\n2 usage, 3 inconclusive, 4 environment, 10 a "
      "defect of Lockstep.");
  if (info.kind == BenchKind::kCollectives) {
    AddSizeOptions(parser, words);
    AddAxisOptions(parser, info, words);
  } else if (info.kind == BenchKind::kDdpSteps) {
    AddDdpOptions(parser, words.ddp);
  } else if (info.kind == BenchKind::kLinks) {
    AddLinkOptions(parser, words.links);
  } else {
    AddLoadOptions(parser, words.load);
  }
  AddMeasureOptions(parser, info, words, options);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  TakeBenchmarkFlags(arguments, options, words);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<std::string> text, parser.Parse(arguments));
  if (text) return CommandLine{std::nullopt, *text};
  LOCKSTEP_RETURN_IF_ERROR(ReadWords(info, parser, words, options));
  words.nccl.graphs = words.nccl.graphs || ReplaysSteps(options.spec.ddp);
  LOCKSTEP_RETURN_IF_ERROR(comm::nccl::ExportNcclChoices(words.nccl));
  return CommandLine{std::move(options), ""};
}

}  // namespace lockstep::bench::harness
