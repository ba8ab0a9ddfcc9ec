// Whole files as text, and what a folder holds.
#pragma once

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

}  // namespace lockstep
