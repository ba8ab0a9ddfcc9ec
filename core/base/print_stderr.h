// Lines for people, on standard error.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

namespace lockstep {

// As PrintStderr(...), which throws where nothing can be written: the disk is full, the
// terminal closed, the reader of a pipe gone. A line that is lost ends no program.
template <typename... T>
void PrintStderr(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace lockstep
