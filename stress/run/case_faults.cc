// Signals go through the coordinator, orders to agents, links' rules to the director of links. A
// fault at a point of the program is asked for by the worker, which waits there until it was
// applied.
#include "stress/run/case_faults.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "stress/faults/outside.h"

namespace lockstep::stress::run {
namespace {

bool IsByClock(const faults::PlannedFault& fault) {
  return fault.moment.kind == faults::FaultMoment::Kind::kTime;
}

}  // namespace

void CaseFaults::Prepare() {
  due_.clear();
  links_.Begin(state_.stress_case->faults, state_.stress_case->seed);
}

void CaseFaults::Start() {
  for (std::size_t i = 0; i < state_.faults.size(); ++i) {
    const faults::PlannedFault& fault = Planned(i);
    const faults::FaultSite site = faults::SiteOf(fault.kind);
    if (site == faults::FaultSite::kStart) Apply(i);
    if (site != faults::FaultSite::kOutside || !IsByClock(fault)) continue;
    due_.push_back({Deadline::AfterSeconds(fault.moment.seconds), i, false});
  }
}

void CaseFaults::HealAfter(std::size_t fault) {
  due_.push_back({Deadline::AfterSeconds(*Planned(fault).duration_seconds), fault, true});
}

void CaseFaults::Apply(std::size_t fault) {
  const faults::PlannedFault& planned = Planned(fault);
  if (IsByClock(planned)) state_.faults[fault].applied_at = NowTicks();
  if (faults::IsOfLink(planned.kind)) return ApplyToLink(fault);
  if (faults::IsByAgent(planned.kind)) {
    return coordinator_.Inject(planned.rank, static_cast<std::uint32_t>(fault),
                               faults::OrderFor(planned));
  }
  coordinator_.Signal(planned.rank, faults::InfoOf(planned.kind).signal);
  state_.faults[fault].fired = true;
  if (planned.kind != faults::FaultKind::kStop) return;
  state_.ranks[planned.rank].stays_stopped = !planned.duration_seconds;
  if (planned.duration_seconds) HealAfter(fault);
}

void CaseFaults::LetGo(std::size_t fault) {
  coordinator_.Send(Planned(fault).rank, {kAppliedMessage, ""});
  state_.faults[fault].awaited = false;
  if (std::ranges::any_of(state_.faults, &FaultState::awaited)) return;
  state_.held_until = Deadline::AfterSeconds(deadline_seconds_);
}

// The rank that waits for it goes on when it is in force; it has fired when traffic met it.
void CaseFaults::ApplyToLink(std::size_t fault) {
  links_.Apply(fault, [this, fault] {
    if (!IsByClock(Planned(fault))) LetGo(fault);
  });
  if (Planned(fault).duration_seconds) HealAfter(fault);
}

void CaseFaults::Heal(std::size_t fault) {
  const faults::PlannedFault& planned = Planned(fault);
  if (faults::IsOfLink(planned.kind)) return links_.Heal(fault);
  coordinator_.Signal(planned.rank, SIGCONT);
  if (!IsByClock(planned)) LetGo(fault);
}

void CaseFaults::DoDue() {
  for (std::size_t i = 0; i < due_.size();) {
    if (!due_[i].at.Passed()) {
      ++i;
      continue;
    }
    const Due due = due_[i];
    due_.erase(due_.begin() + static_cast<std::ptrdiff_t>(i));
    if (due.heal) {
      Heal(due.fault);
    } else if (!state_.ranks[Planned(due.fault).rank].gone) {
      Apply(due.fault);
    }
  }
}

Deadline CaseFaults::NextDue(Deadline wake) const {
  for (const Due& due : due_) wake = wake.Earlier(due.at);
  return wake;
}

void CaseFaults::OnFired(const std::string& text) {
  const auto fault = static_cast<std::size_t>(std::atoll(text.c_str()));
  if (fault >= state_.faults.size()) return;  // a worker is under test and not believed
  const faults::PlannedFault& planned = Planned(fault);
  const bool told_later = faults::IsOfLink(planned.kind) || faults::IsByAgent(planned.kind);
  state_.faults[fault].fired |= !told_later;
  if (faults::SiteOf(planned.kind) != faults::FaultSite::kOutside || IsByClock(planned)) return;
  // A stopped rank is as silent as it looks. Where others apply the fault, the wait is theirs.
  if (told_later) {
    state_.faults[fault].awaited = true;
    state_.held_until = Deadline::AfterSeconds(kForEverSeconds);
  }
  Apply(fault);
}

void CaseFaults::OnFault(const coordinator::Event& event) {
  const auto fault = static_cast<std::size_t>(event.message.type);
  if (fault >= state_.faults.size() || event.news == control::FaultNews::kHealed) return;
  const faults::PlannedFault& planned = Planned(fault);
  state_.faults[fault].fired = event.news == control::FaultNews::kApplied;
  state_.faults[fault].note = event.message.payload;
  const bool waited_for =
      faults::SiteOf(planned.kind) == faults::FaultSite::kOutside && !IsByClock(planned);
  if (waited_for) LetGo(fault);
}

void CaseFaults::OnPlugin(const coordinator::Event& event) {
  const auto met = links_.OnReport(event.rank, event.message.payload);
  if (met) state_.faults[*met].fired = true;
}

std::vector<std::string> CaseFaults::Notes() const {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < state_.faults.size(); ++i) {
    const std::string& note = state_.faults[i].note;
    notes.push_back(note.empty() ? links_.NoteOf(i) : note);
  }
  return notes;
}

}  // namespace lockstep::stress::run
