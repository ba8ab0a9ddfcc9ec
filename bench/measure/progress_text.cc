#include "bench/measure/progress_text.h"

#include <fmt/core.h>

#include <cmath>

#include "core/base/units.h"

namespace lockstep::bench::measure {
namespace {

constexpr std::size_t kColumns = 79;  // a line that fills the last column may wrap
constexpr std::size_t kFewest = 8;    // of a name; with less of it, it says nothing

}  // namespace

std::string ProgressText(const Progress& progress) {
  std::string line =
      progress.repetition > 0 ? fmt::format("repetition {}, ", progress.repetition + 1) : "";
  line += fmt::format("{} of {} cases visited, {} done", progress.visited, progress.cases,
                      progress.done);
  if (std::isfinite(progress.seconds_left)) {
    line += fmt::format(", about {:.0f} s left", progress.seconds_left);
  }
  if (!(progress.newest_ns > 0)) return line;
  const std::string time = fmt::format(": {} so far", FormatDuration(progress.newest_ns));
  const std::size_t used = line.size() + 2 + time.size();
  const std::string& name = progress.newest;
  if (used + name.size() <= kColumns) return line + "; " + name + time;
  if (used + 1 + kFewest > kColumns) return line;
  return line + "; …" + name.substr(name.size() - (kColumns - used - 1)) + time;
}

}  // namespace lockstep::bench::measure
