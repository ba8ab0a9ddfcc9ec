// Whole files as text, and what a folder holds.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace lockstep {

// None: the file cannot be read.
inline std::optional<std::string> ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.bad()) return std::nullopt;
  return std::move(text).str();
}

// "" of one that cannot be read, as /proc has them when a process is gone.
inline std::string TextOf(const std::filesystem::path& path) { return ReadText(path).value_or(""); }

// `missing` where there is none.
inline std::string FirstLine(const std::filesystem::path& path, const char* missing = "unknown") {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : missing;
}

// In no order; none where it cannot be read.
inline std::vector<std::filesystem::path> EntriesOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  return entries;
}

// Where a folder of data may lie that is `name` in an installation, and `in_tree` in the source
// tree, best first: installed beside this program, among its run files as Bazel lays them, in the
// tree.
inline std::vector<std::filesystem::path> DataFolders(const std::string& name,
                                                      const std::string& in_tree) {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = binary.parent_path().parent_path() / "share/lockstep";
    folders = {installed / name, installed / in_tree,
               fs::path(binary.string() + ".runfiles") / "lockstep" / in_tree};
  }
  for (const char* variable : {"RUNFILES_DIR", "TEST_SRCDIR"}) {
    if (const char* root = std::getenv(variable)) {
      folders.push_back(fs::path(root) / "lockstep" / in_tree);
    }
  }
  if (error) return folders;
  for (fs::path above = binary.parent_path(); above.has_relative_path();
       above = above.parent_path()) {
    folders.push_back(above / in_tree);
  }
  return folders;
}

}  // namespace lockstep
