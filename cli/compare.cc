// `lockstep compare BASE… -- CANDIDATE…`: is the candidate slower, or does it fail?
#include "results/compare/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "results/compare/load.h"
#include "results/compare/print.h"

namespace lockstep::cli {
namespace {

namespace compare = results::compare;

struct CompareArguments {
  std::vector<std::string> names;  // without an option: of the base, or both
  std::vector<std::string> base;
  std::vector<std::string> candidate;
  std::vector<std::string> min_effects;
  std::string min_effect_file;
  std::string drift = "5%";
  std::string cases = "*";
  std::vector<std::string> across;
  std::string format = "text";
};

Status AssignSides(CompareArguments& options) {
  std::vector<std::string>& names = options.names;
  if (options.candidate.empty() && options.base.empty() && names.size() == 2) {
    options.base = {names[0]};
    options.candidate = {names[1]};
    return OkStatus();
  }
  std::vector<std::string>& rest = options.base.empty() ? options.base : options.candidate;
  rest.insert(rest.end(), names.begin(), names.end());
  if (!options.base.empty() && !options.candidate.empty()) return OkStatus();
  return InvalidInput("compare: no {} is named; write BASE CANDIDATE, or BASE... -- CANDIDATE...",
                      options.base.empty() ? "base" : "candidate");
}

Result<compare::CompareOptions> OptionsOf(const CompareArguments& options) {
  compare::CompareOptions out;
  if (!options.min_effect_file.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(out.min_effects.AddFile(options.min_effect_file));
  }
  for (const std::string& rule : options.min_effects) {
    LOCKSTEP_RETURN_IF_ERROR(out.min_effects.Add(rule));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(out.drift,
                            compare::ParseFraction("--launch-drift", options.drift, /*zero=*/true));
  out.cases = options.cases;
  out.across.insert(options.across.begin(), options.across.end());
  return out;
}

// A run against itself is the same whatever it is.
Status CheckApart(const std::vector<compare::Launch>& base,
                  const std::vector<compare::Launch>& candidate) {
  for (const compare::Launch& one : base) {
    for (const compare::Launch& other : candidate) {
      if (one.id != other.id || one.started_at != other.started_at) continue;
      return InvalidInput("{}: run {} is on both sides; name it on one", other.path, other.id);
    }
  }
  return OkStatus();
}

std::string Format(const compare::LaunchComparison& comparison, const std::string& format) {
  if (format == "json") return compare::FormatJson(comparison);
  if (format == "markdown") return compare::FormatMarkdown(comparison);
  if (format == "junit") return compare::FormatJUnit(comparison);
  return compare::FormatTable(comparison);
}

Result<ExitCode> RunCompare(CompareArguments options) {
  LOCKSTEP_RETURN_IF_ERROR(AssignSides(options));
  LOCKSTEP_ASSIGN_OR_RETURN(const compare::CompareOptions how, OptionsOf(options));
  LOCKSTEP_ASSIGN_OR_RETURN(compare::Loaded base,
                            compare::LoadLaunches(options.base, compare::Depth::kDirectory));
  LOCKSTEP_ASSIGN_OR_RETURN(compare::Loaded candidate,
                            compare::LoadLaunches(options.candidate, compare::Depth::kDirectory));
  LOCKSTEP_RETURN_IF_ERROR(CheckApart(base.launches, candidate.launches));
  std::vector<std::string> notes = std::move(base.skipped);
  for (const auto& more : {candidate.skipped, base.repeated, candidate.repeated}) {
    notes.insert(notes.end(), more.begin(), more.end());
  }
  const compare::LaunchComparison comparison =
      compare::Compare(base.launches, candidate.launches, how, std::move(notes));
  fmt::print("{}", Format(comparison, options.format));
  return comparison.exit_code;
}

}  // namespace

// `compare A… -- B…` means `compare A… --candidate B…`: the parser does not say where a `--` was.
void SeparateSides(std::vector<std::string>& arguments) {
  std::replace(arguments.begin(), arguments.end(), std::string("--"), std::string("--candidate"));
}

Work AddCompare(ArgumentParser& parser) {
  auto options = std::make_shared<CompareArguments>();
  parser
      .Add("RUNS=FILE", options->names, "Run files, directories or globs: two of them, or a side's")
      .AnyNumber();
  parser.Add("--base=FILE", options->base, "Launches of the base");
  parser.Add("--candidate=FILE", options->candidate, "Launches of the candidate (`--` for short)");
  parser
      .Add("--min-effect=PERCENT", options->min_effects,
           "The least change that counts (3%, or of some cases 'all_reduce/*=3%'; repeated, the "
           "last one that matches holds; default 2%)")
      .OneWordEach();
  parser.Add("--min-effect-file=FILE", options->min_effect_file,
             "TOML with such rules: min_effect = [\"2%\", \"all_reduce/*=3%\"]");
  parser
      .Add("--launch-drift=PERCENT", options->drift,
           "What the machine may drift between launches that were not interleaved")
      .ShowDefault();
  parser.Add("--cases=GLOB", options->cases, "Which cases count").ShowDefault();
  parser
      .Add("--across=WORD", options->across,
           "Compare cases of one name although they differ in backend, ranks or program, in the "
           "options of their work, or only one side's are replayed by a CUDA graph")
      .SplitAtCommas()
      .OneWordEach()
      .OneOf({"backend", "ranks", "program", "cuda_graph", "work"});
  parser
      .Add("--format=WORD", options->format,
           "Form of what is printed (text, json, markdown or junit)")
      .OneOf({"text", "json", "markdown", "junit"})
      .WordRenamed("table", "text")
      .ShowDefault();
  parser.Renamed("--drift", "--launch-drift");
  return [options] { return RunCompare(*options); };
}

}  // namespace lockstep::cli
