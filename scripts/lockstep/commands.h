// The subcommands of `lockstep`. Each is one file with one function that adds it to the command
// line; a new one is declared here and listed in main.cc.
#ifndef LOCKSTEP_SCRIPTS_LOCKSTEP_COMMANDS_H_
#define LOCKSTEP_SCRIPTS_LOCKSTEP_COMMANDS_H_

#include <functional>
#include <string>
#include <vector>

#include "core/base/argument_parser.h"
#include "core/base/status.h"

namespace lockstep::cli {

// The work of a subcommand: prints its result to stdout and returns the exit code, or returns an
// error, which main prints as one line and turns into ExitCodeOf(its code).
using Command = std::function<Result<ExitCode>()>;

// Adds a subcommand with its options. Parsing stores the work in `chosen`; main runs it when the
// whole command line was understood:
//   auto options = std::make_shared<Options>();   // outlives parsing
//   ArgumentParser command = parser.Subcommand("show", "Print a result file", [options, &chosen] {
//     chosen = [options] { return Show(*options); };
//   });
//   command.Add("FILE", options->path, "…").Required();
using AddCommand = void(ArgumentParser& parser, Command& chosen);

AddCommand AddBuckets;      // buckets.cc
AddCommand AddCompare;      // compare.cc
AddCommand AddDiagnose;     // diagnose.cc
AddCommand AddExport;       // export.cc
AddCommand AddDoctor;       // doctor.cc
AddCommand AddMakeDataset;  // make_dataset.cc
AddCommand AddNightly;      // nightly.cc
AddCommand AddReport;       // report.cc
AddCommand AddSampler;      // sampler.cc
AddCommand AddScore;        // score.cc
AddCommand AddShow;         // show.cc
AddCommand AddStress;       // stress.cc
AddCommand AddTraceDdp;     // trace_ddp.cc
AddCommand AddTrend;        // trend.cc
AddCommand AddWatch;        // watch.cc

// `compare A… -- B…` means `compare A… --candidate B…`: the parser does not say where a `--` was.
void SeparateSides(std::vector<std::string>& arguments);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_SCRIPTS_LOCKSTEP_COMMANDS_H_
