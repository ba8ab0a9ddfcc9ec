#include "core/launch/standstill_watch.h"

#include <time.h>

#include <utility>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/verdict/standstill.h"

namespace lockstep {
namespace {

constexpr double kGlanceSeconds = 1;
// Between the two looks: a rank that was about to do something is given time to do it.
constexpr long kBetweenLooksNs = 5'000'000;

bool CanComplete(FleetEventKind kind) {
  return kind == FleetEventKind::kQuiet || kind == FleetEventKind::kExited ||
         kind == FleetEventKind::kSignalled || kind == FleetEventKind::kStopped;
}

}  // namespace

StandstillWatch::StandstillWatch(Fleet& fleet, JudgeFunction judge)
    : fleet_(fleet), judge_(std::move(judge)), ns_per_tick_(CalibrateTicks().ns_per_tick) {}

std::optional<Standstill> StandstillWatch::OnEvent(const FleetEvent& event) {
  if (!CanComplete(event.kind)) return std::nullopt;
  std::vector<RankEvidence> first = fleet_.Glance(Deadline::AfterSeconds(kGlanceSeconds));
  if (!NobodyCanGoOn(first, judge_(first))) return std::nullopt;
  const timespec between{0, kBetweenLooksNs};
  nanosleep(&between, nullptr);
  std::vector<RankEvidence> second = fleet_.Glance(Deadline::AfterSeconds(kGlanceSeconds));
  Standstill standstill;
  standstill.judgement = judge_(second);
  if (!SameMoment(first, second)) return std::nullopt;
  const auto since = static_cast<std::int64_t>(NowTicks() - NewestTicks(second));
  standstill.seconds_after = static_cast<double>(since) * ns_per_tick_ * 1e-9;
  return standstill;
}

}  // namespace lockstep
