// Looks for manifests beside the program, so that installed, built and source trees all work.
// $LOCKSTEP_DATASETS goes first. An unknown name is answered with the nearest known one.
#include "datasets/manifest_search.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

#include "core/base/nearest.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInSourceTree = "datasets/manifests";
constexpr const char* kInRunfiles = "lockstep/datasets/manifests";  // below the workspace's name
constexpr const char* kUserVariable = "LOCKSTEP_DATASETS";

std::vector<fs::path> Candidates() {
  std::vector<fs::path> candidates;
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = binary.parent_path().parent_path() / "share/lockstep";
    candidates.push_back(installed / "manifests");
    candidates.push_back(installed / kInSourceTree);
    candidates.push_back(fs::path(binary.string() + ".runfiles") / kInRunfiles);
  }
  for (const char* variable : {"RUNFILES_DIR", "TEST_SRCDIR"}) {
    if (const char* root = std::getenv(variable))
      candidates.push_back(fs::path(root) / kInRunfiles);
  }
  if (error) return candidates;
  for (fs::path above = binary.parent_path(); above.has_relative_path();
       above = above.parent_path()) {
    candidates.push_back(above / kInSourceTree);
  }
  return candidates;
}

std::set<std::string> AvailableModels(const std::vector<std::string>& directories) {
  std::set<std::string> names;
  for (const std::string& directory : directories) {
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->path().extension() == ".json") names.insert(entry->path().stem().string());
    }
  }
  return names;
}

Status UnknownModel(std::string_view name, const std::vector<std::string>& directories) {
  const std::set<std::string> available = AvailableModels(directories);
  if (available.empty()) {
    return InvalidInput(
        "model '{}' is unknown and no manifests were found; set {} to a directory of manifests",
        name, kUserVariable);
  }
  const std::vector<std::string_view> names(available.begin(), available.end());
  return InvalidInput(
      "model '{}' is unknown; {}available: {}; or give the path of a manifest (.json)", name,
      NearestHint(name, names), fmt::join(available, ", "));
}

// Those that exist, the first match wins.
Result<std::vector<std::string>> ManifestDirectories() {
  std::vector<std::string> directories;
  std::error_code error;
  if (const char* own = std::getenv(kUserVariable); own != nullptr && *own != '\0') {
    if (!fs::is_directory(own, error)) {
      return InvalidInput(
          "{}: '{}' is not a directory; set it to a directory of manifests or unset it",
          kUserVariable, own);
    }
    directories.push_back(own);
  }
  for (const fs::path& candidate : Candidates()) {
    if (fs::is_directory(candidate, error)) directories.push_back(candidate.string());
  }
  return directories;
}

}  // namespace

Result<std::string> FindManifest(std::string_view name_or_path) {
  if (name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".json")) {
    return std::string(name_or_path);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> directories, ManifestDirectories());
  for (const std::string& directory : directories) {
    const fs::path path = fs::path(directory) / fmt::format("{}.json", name_or_path);
    std::error_code error;
    if (!name_or_path.empty() && fs::exists(path, error)) return path.string();
  }
  return UnknownModel(name_or_path, directories);
}

}  // namespace lockstep::datasets
