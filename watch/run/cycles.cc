// Ranks were read up to different calls. So each is read up to the newest call that anybody was
// seen to enter. From there on what all of them have over is the same, and nobody misses any of it.
#include "watch/run/cycles.h"

#include <algorithm>
#include <vector>

namespace lockstep::watch::run {

namespace {

constexpr std::uint64_t kFewest = 256;  // calls: to read fewer takes no longer

}  // namespace

std::uint64_t TakeCycles(
    const std::map<int, std::unique_ptr<Process>>& processes, judge::Judge& judge,
    const std::function<std::uint64_t(int rank, Process& process, std::uint64_t calls)>& drain) {
  if (processes.size() != judge.history().ranks.size()) return 0;
  std::vector<events::Cycle> cycles;
  for (const auto& [rank, process] : processes) {
    cycles.push_back(process->Coming());
    if (cycles.back().over < kFewest) return 0;
  }
  std::uint64_t taken = 0;
  std::uint64_t times = cycles.front().over;
  auto cycle = cycles.begin();
  for (const auto& [rank, process] : processes) {
    if (cycle->inside) taken += drain(rank, *process, 1);
    const std::uint64_t behind = judge.Behind(rank, *cycle);
    if (behind >= cycle->over) return taken;
    if (behind > 0) taken += drain(rank, *process, behind);
    *cycle = process->Coming();
    if (cycle->length == 0) return taken;
    times = std::min(times, cycle->over / cycle->length);
    ++cycle;
  }
  if (times == 0 || !judge.TakeCycles(cycles, times)) return taken;
  const std::uint64_t calls = times * cycles.front().length;
  for (const auto& [rank, process] : processes) process->Pass(calls);
  return taken + 2 * calls * processes.size();
}

}  // namespace lockstep::watch::run
