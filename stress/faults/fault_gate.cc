// A fault is due when the program reaches its moment. Those of collectives wait for the next call;
// all others take effect at once, each only once.
#include "stress/faults/fault_gate.h"

namespace lockstep::stress::faults {

FaultGate::FaultGate(const std::vector<PlannedFault>& faults, int rank, RankBody& body)
    : body_(body) {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (faults[i].rank == rank) entries_.push_back({i, faults[i]});
  }
}

bool FaultGate::IsDue(const PlannedFault& fault, FaultMoment::Kind kind,
                      std::int64_t number) const {
  const FaultMoment& moment = fault.moment;
  if (moment.kind == FaultMoment::Kind::kTime) {
    // From outside it comes by the coordinator's clock.
    return SiteOf(fault.kind) != FaultSite::kOutside && body_.SecondsSinceStart() >= moment.seconds;
  }
  return moment.kind == kind && moment.number == number;
}

std::size_t FaultGate::NextDue(std::size_t from, FaultMoment::Kind kind, std::int64_t number) {
  std::lock_guard lock(mutex_);
  for (std::size_t i = from; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.due || !IsDue(entry.fault, kind, number)) continue;
    const FaultSite site = SiteOf(entry.fault.kind);
    if (site == FaultSite::kStart) continue;
    entry.due = true;
    if (site == FaultSite::kCall || site == FaultSite::kLibrary) continue;
    if (entry.fault.kind == FaultKind::kNeverFinalize) continue;
    entry.taken = true;
    return i;
  }
  return entries_.size();
}

Status FaultGate::Reach(FaultMoment::Kind kind, std::int64_t number) {
  body_.AtMoment();
  for (std::size_t i = 0; (i = NextDue(i, kind, number)) < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    body_.Journal(entry.index);
    const FaultInfo& info = InfoOf(entry.fault.kind);
    LOCKSTEP_RETURN_IF_ERROR(info.site == FaultSite::kOutside ? body_.ApplyOutside(entry.index)
                                                              : info.inject(body_, entry.fault));
  }
  return OkStatus();
}

std::vector<FaultGate::Taken> FaultGate::Take(FaultSite site) {
  std::lock_guard lock(mutex_);
  std::vector<Taken> taken;
  for (Entry& entry : entries_) {
    if (!entry.due || entry.taken || SiteOf(entry.fault.kind) != site) continue;
    entry.taken = true;
    taken.push_back({entry.index, entry.fault});
  }
  return taken;
}

bool FaultGate::NeverFinalize() {
  for (Entry& entry : entries_) {
    if (entry.fault.kind != FaultKind::kNeverFinalize || !entry.due) continue;
    body_.Journal(entry.index);
    return true;
  }
  return false;
}

}  // namespace lockstep::stress::faults
