// The name of a file that holds a part of a launch, or what one side of it knows: beside that of
// the whole run, which may be written by others.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::results::store {

inline std::string PartialPath(std::string path, int rank) {
  constexpr std::string_view kSuffix = ".h5";
  if (path.ends_with(kSuffix)) path.resize(path.size() - kSuffix.size());
  return path + "-rank" + std::to_string(rank) + "-partial.h5";
}

// Of such a file the name of the whole run's; "" of another.
inline std::string WholePathOf(const std::string& path) {
  constexpr std::string_view kSuffix = "-partial.h5";
  const std::size_t rank = path.rfind("-rank");
  if (!path.ends_with(kSuffix) || rank == std::string::npos) return "";
  return path.substr(0, rank) + ".h5";
}

}  // namespace lockstep::results::store
