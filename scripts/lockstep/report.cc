// `lockstep report RUN.h5 … -o report.html`: checks the files, then runs the program that draws.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "results/store/seal.h"
#include "scripts/lockstep/commands.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInstalled = "libexec/lockstep/report/report.py";
constexpr const char* kInRunfiles = "lockstep/results/report/html/report.py";

struct Options {
  std::vector<std::string> paths;
  std::string output;
  std::string figures;
  std::string title;
};

Result<fs::path> ThisProgram() {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (!error) return binary;
  return EnvironmentError(fmt::format("/proc/self/exe: {}; is /proc mounted?", error.message()));
}

// Beside the installed program, or where Bazel keeps the data of its binaries.
Result<std::string> FindScript(const fs::path& binary) {
  std::vector<fs::path> candidates = {binary.parent_path().parent_path() / kInstalled,
                                      fs::path(binary.string() + ".runfiles") / kInRunfiles};
  for (const char* variable : {"RUNFILES_DIR", "TEST_SRCDIR"}) {
    if (const char* root = std::getenv(variable)) {
      candidates.push_back(fs::path(root) / kInRunfiles);
    }
  }
  std::error_code error;
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate, error)) return candidate.string();
  }
  return EnvironmentError(fmt::format("{}: not found; install Lockstep with scripts/install",
                                      candidates.front().string()));
}

// Leaves this process to the script; returns only on an error.
Result<ExitCode> Report(const Options& options) {
  for (const std::string& path : options.paths) {
    LOCKSTEP_RETURN_IF_ERROR(VerifySeal(path));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path binary, ThisProgram());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string script, FindScript(binary));
  std::vector<std::string> words = {script, "--lockstep=" + binary.string(),
                                    "--output=" + options.output};
  if (!options.figures.empty()) words.push_back("--figures=" + options.figures);
  if (!options.title.empty()) words.push_back("--title=" + options.title);
  words.push_back("--");
  words.insert(words.end(), options.paths.begin(), options.paths.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(script.c_str(), argv.data());
  return EnvironmentError(fmt::format("{}: cannot be run ({}); it needs /usr/bin/python3", script,
                                      std::strerror(errno)));
}

}  // namespace

void AddReport(CLI::App& app, Command& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "Write runs as one self-contained HTML page");
  command->add_option("RUN", options->paths, "Run files (.h5); several are compared")->required();
  command->add_option("-o,--output", options->output, "The page to write")->required();
  command->add_option("--figures", options->figures,
                      "Also write every figure as SVG and PNG to this directory");
  command->add_option("--title", options->title, "Heading of the page");
  command->callback([options, &chosen] { chosen = [options] { return Report(*options); }; });
}

}  // namespace lockstep
