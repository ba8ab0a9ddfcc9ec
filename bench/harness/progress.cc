#include "bench/harness/progress.h"

#include <fmt/core.h>

#include <cstdio>
#include <string>

#include "core/base/clock.h"
#include "core/coordinator/terminal.h"

namespace lockstep::bench::harness {

Progress::Progress(bool wanted) : on_terminal_(wanted && coordinator::StderrIsSeen()) {}

void Progress::Update(int repetition, std::size_t cases_done, std::size_t cases,
                      double seconds_to_go) {
  if (!on_terminal_) return;
  const std::int64_t now = MonotonicNs();
  if (now - last_ns_ < 100'000'000) return;
  last_ns_ = now;
  const std::string sweep = repetition > 0 ? fmt::format("repetition {}, ", repetition + 1) : "";
  const std::string line = fmt::format("\r{}{} of {} cases measured, about {:.0f} s left\x1b[K",
                                       sweep, cases_done, cases, seconds_to_go);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::Notice(const std::string& line) {
  Clear();
  fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

void Progress::Clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace lockstep::bench::harness
