#include "stress/harness/progress.h"

#include <fmt/core.h>

#include <cstdio>

#include "core/coordinator/terminal.h"

namespace lockstep::stress::harness {

StressProgress::StressProgress(bool wanted) : on_terminal_(wanted && coordinator::StderrIsSeen()) {}

StressProgress::~StressProgress() {
  if (!on_terminal_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

void StressProgress::Show(std::size_t done, std::size_t cases, const std::string& label) {
  if (!on_terminal_) return;
  fmt::print(stderr, "\r{} of {} cases done, now {}\x1b[K", done, cases, label);
  std::fflush(stderr);
}

}  // namespace lockstep::stress::harness
