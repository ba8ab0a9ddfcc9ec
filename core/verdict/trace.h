// The last collectives of several ranks side by side, around the one that is in question.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict/evidence.h"
#include "core/verdict/outcome.h"

namespace lockstep::verdict {

enum class CallState : std::uint8_t {
  kNone,  // no such call in the rank's journal
  kDone,
  kWaits,    // the library has it
  kQueued,   // put on a stream that has not reached it
  kError,    // it reported an error
  kEnded,    // the rank is gone, and was in it
  kStopped,  // the rank is stopped, and is in it
};
// "", "done", "WAITS", "queued", "ERROR", "ended", "stopped"
std::string_view NameOf(CallState state);

// One rank's call in one position.
struct TraceCell {
  std::string call;  // "all_reduce f32[2]  bucket 0"; in the row in question of a rank that has
                     // none: "(computing …)", what became of it instead
  CallState state = CallState::kNone;
};

struct TraceRow {
  std::uint64_t sequence = 0;
  bool in_question = false;
  std::vector<TraceCell> cells;  // one a column
};

struct Trace {
  std::string communicator;  // "world"
  std::vector<int> ranks;    // of the columns
  std::vector<TraceRow> rows;
};

struct TraceLimits {
  std::size_t rows_before = 6;
  std::size_t rows_after = 2;
  std::size_t columns = 8;  // culprits first, then the lowest ranks
};

// Around the operation of the first finding that is about one, else the earliest that a rank of the
// world waits in; no rows when there is none.
Trace TraceOf(const std::vector<RankEvidence>& evidence, const Setting& setting,
              const Judgement& judgement, const TraceLimits& limits = {});

//  seq  rank 0                                   rank 1
//   27  all_reduce f32[2]  bucket 0     done     all_reduce f32[2]  bucket 0  done
// > 28  all_reduce f32[1]  join: alive  WAITS    barrier                      WAITS
// "" without rows.
std::string FormatTrace(const Trace& trace);

}  // namespace lockstep::verdict
