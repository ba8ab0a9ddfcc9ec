// What an agent knows of its worker's process.
#pragma once

#include <optional>

#include "core/agent/child.h"
#include "core/base/clock.h"
#include "core/journal/journal.h"
#include "core/verdict/judge.h"

namespace lockstep::agent {

struct WorkerState {
  // Of none: as of one that idles.
  verdict::ProcessState process = verdict::ProcessState::kRunning;
  int exit_code = 0;
  int signal = 0;
  Ticks started = 0;
  Ticks stopped = 0;
  Ticks died = 0;
  std::optional<int> death;  // wait status

  void Note(const ChildChange& change);
  // Of one that is dead: its last event, which it could not write itself.
  void AppendDeath(journal::Journal& journal) const;
};

}  // namespace lockstep::agent
