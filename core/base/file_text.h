// Whole files as text.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

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

}  // namespace lockstep
