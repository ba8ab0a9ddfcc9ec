// What a subcommand of `lockstep` is: a file with a function of type AddOptions, a test, and a row
// in subcommands.cc.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/argument_parser.h"
#include "core/base/status.h"

namespace lockstep::cli {

// Prints the result of a subcommand to stdout and returns the exit code, or returns an error, which
// main prints as one line and turns into ExitCodeOf(its code).
using Work = std::function<Result<ExitCode>()>;

// Adds the options of a subcommand to its command line, and returns what is done when the whole
// command line was understood:
//   Work AddShow(ArgumentParser& parser) {
//     auto options = std::make_shared<Options>();  // outlives parsing
//     parser.Add("FILE", options->path, "…").Required();
//     return [options] { return Show(*options); };
//   }
using AddOptions = Work(ArgumentParser& parser);

// A command of scripts/; installed, it is in libexec/lockstep.
struct Script {
  const char* name;
  bool runs_programs = false;  // takes --programs=FOLDER
};

struct Subcommand {
  const char* name;
  const char* help;           // one line
  AddOptions* add = nullptr;  // null also where its file is not linked
  // Of all words behind the program's name, before they are parsed: `--` in another meaning. Words
  // that --help does not list have no place here.
  void (*rewrite)(std::vector<std::string>& arguments) = nullptr;
  // Instead of `add`: the program in Python which gets all words behind the subcommand, --help too.
  const Script* script = nullptr;
};

// In the order of --help.
std::span<const Subcommand> Subcommands();

// The program of the wheel is linked without those that start programs.
bool IsHere(const Subcommand& subcommand);

}  // namespace lockstep::cli
