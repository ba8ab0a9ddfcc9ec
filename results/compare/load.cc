// Finds run files by name, folder or glob, and reads one after the other. Only figures stay in
// memory. Hidden files are being written and are passed over.
#include "results/compare/load.h"

#include <fmt/core.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "results/store/store.h"

namespace lockstep::results::compare {
namespace {

namespace fs = std::filesystem;

template <typename Iterator>
Result<std::vector<std::string>> SortedRunFiles(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  Iterator entries(directory, error);
  for (; !error && entries != Iterator(); entries.increment(error)) {
    const fs::path& path = entries->path();
    const bool hidden = path.filename().string().starts_with('.');  // being written
    if (path.extension() == ".h5" && !hidden) paths.push_back(path);
  }
  if (error) {
    return InvalidInput("{}: cannot be listed ({}); name a directory with run files", directory,
                        error.message());
  }
  if (paths.empty()) {
    return InvalidInput("{}: no .h5 file in it; name a directory with run files", directory);
  }
  std::ranges::sort(paths);
  return paths;
}

std::vector<std::string> Matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return paths;
}

Status AddFiles(const std::string& name, Depth depth, std::vector<std::string>& paths) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> found, RunFilesIn(name, depth));
    paths.insert(paths.end(), found.begin(), found.end());
    return OkStatus();
  }
  if (fs::exists(name, ignored)) {
    paths.push_back(name);
    return OkStatus();
  }
  const std::vector<std::string> matches = Matches(name);
  if (matches.empty()) {
    return InvalidInput(
        "{}: no such file or directory; name run files, directories of them or a glob", name);
  }
  for (const std::string& match : matches) {
    LOCKSTEP_RETURN_IF_ERROR(AddFiles(match, depth, paths));
  }
  return OkStatus();
}

bool IsPartial(const std::string& path) { return path.ends_with("-partial.h5"); }

// The samples of one rank are no times of a case.
Launch WithoutTimes(Launch launch) {
  for (CaseFigures& one : launch.cases) {
    one.median_ns = kNan;
    one.by_rank.clear();
    if (one.verdict == verdict::Verdict::kFail) continue;
    one.verdict = launch.verdict;
    one.outcome = launch.outcome;
  }
  return launch;
}

}  // namespace

Result<std::vector<std::string>> RunFilesIn(const std::string& directory, Depth depth) {
  return depth == Depth::kBelow ? SortedRunFiles<fs::recursive_directory_iterator>(directory)
                                : SortedRunFiles<fs::directory_iterator>(directory);
}

Result<Loaded> LoadLaunches(const std::vector<std::string>& names, Depth depth, Lost lost) {
  std::vector<std::string> paths;
  for (const std::string& name : names) LOCKSTEP_RETURN_IF_ERROR(AddFiles(name, depth, paths));
  // Whole files first: what a rank saved of a launch counts only where there is none.
  std::ranges::stable_partition(paths, [](const std::string& path) { return !IsPartial(path); });
  Loaded loaded;
  std::set<std::string> known;
  for (const std::string& path : paths) {
    if (lost == Lost::kSkipped && IsPartial(path)) {
      loaded.skipped.push_back(path + ": what one rank saved when its launch was lost");
      continue;
    }
    const Result<store::Run> run = store::ReadRun(path);
    if (!run.ok()) {
      loaded.skipped.push_back(run.status().message());
    } else if (known.insert(run->id + run->started_at + run->name).second) {
      loaded.launches.push_back(IsPartial(path) ? WithoutTimes(FiguresOf(*run, path))
                                                : FiguresOf(*run, path));
    } else if (!IsPartial(path)) {
      loaded.repeated.push_back(fmt::format("{}: run {} was read already", path, run->id));
    }
  }
  if (!loaded.launches.empty()) return loaded;
  return InvalidInput("no run could be read: {}", loaded.skipped.empty()
                                                      ? "nothing was named; name run files"
                                                      : loaded.skipped.front());
}

}  // namespace lockstep::results::compare
