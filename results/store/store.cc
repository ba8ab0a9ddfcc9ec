#include "results/store/store.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::results::store {

std::string DefaultRunPath(const Run& run, const std::string& directory) {
  // "2026-11-21T10:44:25Z" -> "20261121T104425Z"
  std::string time = run.started_at;
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  const std::string_view slash = directory.empty() || directory.back() == '/' ? "" : "/";
  return fmt::format("{}{}{}-{}-{}.h5", directory, slash, time, run.name, run.id);
}

}  // namespace lockstep::results::store
