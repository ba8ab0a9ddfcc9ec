// A rank that is kept from its processor, or goes on with its program, is not lost: it comes later.
#include "stress/run/ranks_awaited.h"

#include <algorithm>

#include "stress/run/per_rank.h"

namespace lockstep::stress::run {

std::vector<double> RanksAwaited::AwakeSilences() {
  std::vector<double> silences;
  for (const verdict::RankEvidence& rank : coordinator_.Glance())
    silences.push_back(rank.seconds_silent - rank.starved_s);
  return silences;
}

bool RanksAwaited::AwaitAll(const std::vector<int>& ranks, double seconds,
                            const std::function<bool(int rank)>& came) {
  std::vector<double> before = AwakeSilences();
  double left_s = seconds;
  while (left_s > 0) {
    if (take_events_(left_s, [&] { return std::ranges::all_of(ranks, came); })) return true;
    if (state_.over()) return false;
    left_s = 0;
    const std::vector<double> now = AwakeSilences();
    for (const int rank : ranks) {
      double& since = OfRank(before, rank);
      if (OfRank(now, rank) < since) since = 0;  // another silence
      if (!came(rank)) left_s = std::max(left_s, seconds - (OfRank(now, rank) - since));
    }
  }
  return false;
}

}  // namespace lockstep::stress::run
