// A rank that is kept from its processor, or goes on with its program, is not lost: it comes later.
#include "stress/run/ranks_awaited.h"

#include <algorithm>

#include "stress/run/per_rank.h"

namespace lockstep::stress::run {

SilencesSince::SilencesSince(coordinator::Coordinator& coordinator)
    : coordinator_(coordinator), before_(Now()) {}

std::vector<double> SilencesSince::Now() const {
  std::vector<double> silences;
  for (const verdict::RankEvidence& rank : coordinator_.Glance())
    silences.push_back(rank.seconds_silent - rank.starved_s);
  return silences;
}

double SilencesSince::SecondsLeft(const std::vector<int>& ranks, double seconds) {
  double left_s = 0;
  const std::vector<double> now = Now();
  for (const int rank : ranks) {
    double& since = OfRank(before_, rank);
    if (OfRank(now, rank) < since) since = 0;  // another silence
    left_s = std::max(left_s, seconds - (OfRank(now, rank) - since));
  }
  return left_s;
}

bool RanksAwaited::AwaitAll(const std::vector<int>& ranks, double seconds,
                            const std::function<bool(int rank)>& came) {
  SilencesSince silences(coordinator_);
  for (double left_s = seconds; left_s > 0;) {
    if (take_events_(left_s, [&] { return std::ranges::all_of(ranks, came); })) return true;
    if (state_.over()) return false;
    std::vector<int> absent = ranks;
    std::erase_if(absent, came);
    left_s = silences.SecondsLeft(absent, seconds);
  }
  return false;
}

}  // namespace lockstep::stress::run
