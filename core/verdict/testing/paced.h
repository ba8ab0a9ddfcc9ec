// Test material: a history at a pace of its own.
#pragma once

#include "core/base/clock.h"
#include "core/journal/journal.h"
#include "core/verdict/evidence.h"

namespace lockstep::verdict {

// Each collective comes after `own` ticks of work and is `shared` ticks long.
inline RankEvidence Paced(RankEvidence evidence, Ticks own, Ticks shared) {
  Ticks now = 1000;
  for (journal::JournalEvent& event : evidence.journal.events) {
    if (event.kind == journal::EventKind::kEnqueue) now += own;
    if (event.kind == journal::EventKind::kEnd) now += shared;
    event.ticks = now;
  }
  return evidence;
}

}  // namespace lockstep::verdict
