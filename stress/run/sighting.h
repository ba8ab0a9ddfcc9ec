// The moment at which a mismatch is proved, although the ranks may go on for a while: calls that
// differ do not always end in a standstill.
#pragma once

#include <optional>
#include <vector>

#include "core/verdict/judge.h"

namespace lockstep::stress::run {

// A mismatch as one look at all ranks showed it. It is only a figure until a second look, that of
// the final judgement, finds the same.
struct Sighting {
  verdict::FindingCause cause;
  journal::JournalEvent operation;  // of the position that the ranks left differently
  Ticks proved_at = 0;              // when the second of two calls that differ was entered
  Ticks seen_at = 0;
};

// Of the first finding, if it is proved by calls of one position that differ and both are in the
// journals. Not of silence, nor of ranks that are gone: those are no proof before all stand still.
std::optional<Sighting> SightMismatch(const std::vector<verdict::RankEvidence>& evidence,
                                      const verdict::Judgement& judgement, Ticks now);

// Whether the final judgement says the same.
bool Confirms(const verdict::Judgement& judgement, const Sighting& sighting);

}  // namespace lockstep::stress::run
