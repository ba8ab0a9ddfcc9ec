#include "core/agent/worker_state.h"

#include <sys/wait.h>

namespace lockstep::agent {

void WorkerState::Note(const ChildChange& change) {
  switch (change.kind) {
    case ChildChange::Kind::kExited:
      process = verdict::ProcessState::kExited;
      exit_code = change.value;
      death = W_EXITCODE(change.value, 0);
      died = NowTicks();
      break;
    case ChildChange::Kind::kSignalled:
      process = verdict::ProcessState::kSignalled;
      signal = change.value;
      death = W_EXITCODE(0, change.value);
      died = NowTicks();
      break;
    case ChildChange::Kind::kStopped:
      process = verdict::ProcessState::kStopped;
      signal = change.value;
      stopped = NowTicks();
      break;
    case ChildChange::Kind::kContinued:
      process = verdict::ProcessState::kRunning;
      signal = 0;
      break;
  }
}

void WorkerState::AppendDeath(journal::Journal& journal) const {
  journal::JournalEvent last;
  last.index = journal.events.empty() ? 1 : journal.events.back().index + 1;
  last.ticks = died;
  last.kind = journal::EventKind::kDeath;
  last.value = *death;
  if (!journal.events.empty()) {
    last.case_index = journal.events.back().case_index;
    last.phase = journal.events.back().phase;
  }
  journal.events.push_back(last);
}

}  // namespace lockstep::agent
