// Looks for manifests beside the program, so that installed, built and source trees all work.
// $LOCKSTEP_DATASETS goes first. An unknown name is answered with the nearest known one.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

#include "core/base/file_text.h"
#include "core/base/nearest.h"
#include "datasets/manifest.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUserVariable = "LOCKSTEP_DATASETS";

std::set<std::string> AvailableModels(const std::vector<std::string>& directories) {
  std::set<std::string> names;
  for (const std::string& directory : directories) {
    for (const fs::path& path : EntriesOf(directory)) {
      if (path.extension() == ".json") names.insert(path.stem().string());
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
  for (const fs::path& candidate : DataFolders("manifests", "datasets/manifests")) {
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
