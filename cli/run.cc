// `lockstep run --launches=K -- COMMAND`: a launch shares its placement, memory and mode of the
// library with itself only, so what is known of a case is known over launches. Two commands are
// launched in turn, which lets drift of the machine meet both alike, and compared. `--tabulate`
// starts nothing: it tells the same of launches that lie in a folder.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/launch.h"
#include "cli/subcommand.h"
#include "core/base/utc.h"
#include "results/compare/compare.h"
#include "results/compare/load.h"
#include "results/compare/over_launches.h"
#include "results/compare/print.h"
#include "results/store/partial_path.h"
#include "session/progress_line.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
namespace compare = results::compare;

struct RunArguments {
  int launches = 8;
  double limit_seconds = 600;
  std::string output;
  std::string tabulate;            // a folder of earlier launches; "": launch the command
  std::vector<std::string> words;  // of one command or two, with `--` between them
};

// A command and the folder of its launches.
struct Side {
  std::vector<std::string> command;
  fs::path folder;
};

Result<std::vector<Side>> SidesOf(const RunArguments& options) {
  std::vector<Side> sides(1);
  for (const std::string& word : options.words) {
    if (word == "--output" || word.starts_with("--output=")) {
      return InvalidInput(
          "run: " + word +
          " in the command; every launch gets a file of its own: see run --output-folder");
    }
    if (word == "--") {
      sides.emplace_back();
    } else {
      sides.back().command.push_back(word);
    }
  }
  if (sides.size() > 2) {
    return InvalidInput("run: {} commands; give one, or two that are compared", sides.size());
  }
  for (const Side& side : sides) {
    if (side.command.empty()) return InvalidInput("run: an empty command; write -- mpirun ...");
  }
  std::string started = UtcNow();
  std::erase_if(started, [](char c) { return c == '-' || c == ':'; });
  const fs::path ours = fs::path("results/launches") / started;
  fs::path folder = options.output.empty() ? ours : fs::path(options.output);
  // Another one began in this second.
  for (int n = 2; options.output.empty() && fs::exists(folder); ++n) {
    folder = fmt::format("{}-{}", ours.string(), n);
  }
  sides.front().folder = sides.size() == 1 ? folder : folder / "base";
  if (sides.size() == 2) sides.back().folder = folder / "candidate";
  return sides;
}

Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return EnvironmentError("--output-folder: '{}' can't be made ({}); choose another place",
                            folder.string(), error.message());
  }
  if (fs::is_empty(folder, error)) return OkStatus();
  return InvalidInput(
      "--output-folder: '{}' holds files; name a new folder, so that launches are not mixed",
      folder.string());
}

std::string LastLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string last = "it said nothing";
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" -\t") != std::string::npos) last = line;
  }
  return last;
}

// Whether to go on.
Result<bool> LaunchOnce(const Side& side, int number, double limit_seconds) {
  const std::string stem = (side.folder / fmt::format("{:03}", number)).string();
  LaunchOrder order{side.command, stem + ".log", "", limit_seconds};
  order.words.push_back("--output=" + stem + ".h5");
  LOCKSTEP_ASSIGN_OR_RETURN(const LaunchEnd end, RunLaunch(order));
  if (end.interrupted) return false;
  std::error_code ignored;
  if (fs::exists(stem + ".h5", ignored)) return true;
  const std::string message =
      fmt::format("launch {} left no result file (exit code {}): {}; see {}", number, end.exit_code,
                  LastLineOf(order.log), order.log);
  return end.exit_code == static_cast<int>(ExitCode::kUsage) ? InvalidInput(message)
                                                             : EnvironmentError(message);
}

Status LaunchAll(const RunArguments& options, const std::vector<Side>& sides) {
  session::ProgressLine progress(true);
  const SignalsNoted noted;
  for (int round = 0; round < options.launches; ++round) {
    std::vector<const Side*> turn;
    for (const Side& side : sides) turn.push_back(&side);
    if (round % 2 == 1) std::reverse(turn.begin(), turn.end());
    for (const Side* side : turn) {
      progress.ShowStep(
          fmt::format("launch {} of {}, in {}", round + 1, options.launches, side->folder.string()),
          "lockstep run: ");
      LOCKSTEP_ASSIGN_OR_RETURN(const bool more,
                                LaunchOnce(*side, round + 1, options.limit_seconds));
      if (!more) return OkStatus();
    }
  }
  return OkStatus();
}

void PrintNotRead(const compare::Loaded& loaded) {
  for (const auto& lines : {loaded.skipped, loaded.repeated}) {
    for (const std::string& line : lines) fmt::print("not read: {}\n", line);
  }
}

Result<ExitCode> Tell(const RunArguments& options, const std::vector<Side>& sides) {
  std::vector<compare::Loaded> loaded;
  for (const Side& side : sides) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        compare::Loaded of_side,
        compare::LoadLaunches({side.folder.string()}, compare::Depth::kDirectory));
    loaded.push_back(std::move(of_side));
  }
  if (sides.size() == 1) {
    const compare::LaunchSummary summary = compare::SummarizeLaunches(
        loaded.front().launches, static_cast<std::size_t>(options.launches));
    fmt::print("{}", compare::FormatTable(summary));
    PrintNotRead(loaded.front());
    fmt::print("launches: {}\n", sides.front().folder.string());
    return summary.exit_code;
  }
  compare::CompareOptions how;
  how.across = {"backend", "ranks", "program", "cuda_graph",
                "work"};  // the commands say what differs
  std::vector<std::string> notes = std::move(loaded[0].skipped);
  notes.insert(notes.end(), loaded[1].skipped.begin(), loaded[1].skipped.end());
  const compare::LaunchComparison comparison =
      compare::Compare(loaded[0].launches, loaded[1].launches, how, std::move(notes));
  fmt::print("{}launches: {} and {}\n", compare::FormatTable(comparison), sides[0].folder.string(),
             sides[1].folder.string());
  return comparison.exit_code;
}

// What was saved of a launch that was launched again, and has its whole file now: it counts once.
void PassOverRepeated(compare::Loaded& loaded) {
  std::erase_if(loaded.launches, [&](const compare::Launch& launch) {
    const std::string whole = results::store::WholePathOf(launch.path);
    std::error_code ignored;
    if (whole.empty() || !fs::exists(whole, ignored)) return false;
    loaded.skipped.push_back(
        fmt::format("{}: {} is of the same launch, launched again", launch.path, whole));
    return true;
  });
}

// Of launches that lie there, of whatever program.
Result<ExitCode> Tabulate(const RunArguments& options) {
  if (!options.words.empty()) {
    return InvalidInput("run: --tabulate and a command; --tabulate starts nothing: leave out one");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(compare::Loaded loaded,
                            compare::LoadLaunches({options.tabulate}, compare::Depth::kDirectory,
                                                  compare::Lost::kWithoutTimes));
  // A launch whose file cannot be read may be the one that failed.
  const std::size_t unread = loaded.skipped.size();
  PassOverRepeated(loaded);
  const compare::LaunchSummary summary =
      compare::SummarizeLaunches(loaded.launches, loaded.launches.size() + unread);
  fmt::print("{}", compare::FormatTable(summary));
  PrintNotRead(loaded);
  return summary.exit_code;
}

Result<ExitCode> Run(const RunArguments& options) {
  if (!options.tabulate.empty()) return Tabulate(options);
  if (options.words.empty()) {
    return InvalidInput(
        "run: no command; write -- mpirun ..., or --tabulate=FOLDER of earlier launches");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Side> sides, SidesOf(options));
  for (const Side& side : sides) LOCKSTEP_RETURN_IF_ERROR(MakeFolder(side.folder));
  LOCKSTEP_RETURN_IF_ERROR(LaunchAll(options, sides));
  return Tell(options, sides);
}

}  // namespace

Work AddRun(ArgumentParser& parser) {
  auto options = std::make_shared<RunArguments>();
  parser.Add(
      "COMMAND=WORD", options->words,
      "After `--`: mpirun and a bench_ program; a second `--` and command is compared with it");
  parser.Add("--launches=COUNT", options->launches, "Launches of each command")
      .Between(1, 10'000)
      .ShowDefault();
  parser.Add("--launch-limit=TIME", options->limit_seconds, "Time after which a launch is ended")
      .BetweenReals(1, 86'400)
      .ShowDefault();
  parser.Add("--output-folder=FOLDER", options->output,
             "Folder to write (a new one; default: below results/launches)");
  parser.Add("--tabulate=FOLDER", options->tabulate,
             "Folder of earlier launches: print their table, start nothing");
  parser.Renamed("--limit", "--launch-limit");
  parser.Renamed("--output", "--output-folder");
  return [options] { return Run(*options); };
}

}  // namespace lockstep::cli
