#include "core/coordinator/standstill_watch.h"

#include <utility>

#include "core/base/clock.h"
#include "core/base/now.h"

namespace lockstep::coordinator {
namespace {

// Between the two looks: a rank that was about to do something is given time to do it.
constexpr long kBetweenLooksNs = 5'000'000;
constexpr int kMostLooks = 4;

bool CanComplete(EventKind kind) {
  return kind == EventKind::kQuiet || kind == EventKind::kExited || kind == EventKind::kSignalled ||
         kind == EventKind::kStopped;
}

}  // namespace

StandstillWatch::StandstillWatch(Coordinator& coordinator, JudgeFunction judge)
    : coordinator_(coordinator),
      judge_(std::move(judge)),
      ns_per_tick_(CalibrateTicks().ns_per_tick) {}

std::optional<Standstill> StandstillWatch::OnEvent(const Event& event) {
  if (!CanComplete(event.kind)) return std::nullopt;
  std::vector<RankEvidence> before = coordinator_.Glance();
  for (int look = 0; look < kMostLooks; ++look) {
    if (!verdict::NobodyCanGoOn(before, judge_(before))) return std::nullopt;
    SleepNs(kBetweenLooksNs);
    std::vector<RankEvidence> after = coordinator_.Glance();
    Standstill standstill;
    standstill.judgement = judge_(after);
    if (verdict::SameMoment(before, after)) {
      const auto since = static_cast<std::int64_t>(NowTicks() - verdict::NewestTicks(after));
      standstill.seconds_after = static_cast<double>(since) * ns_per_tick_ * 1e-9;
      return standstill;
    }
    // What changed in between may be the last that anybody tells.
    before = std::move(after);
  }
  return std::nullopt;
}

}  // namespace lockstep::coordinator
