// A job's dumps as the histories that core/verdict judges.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/flight/job.h"
#include "core/verdict/judge.h"

namespace lockstep::flight {

using collective::Collective;
using journal::JournalEvent;
using verdict::RankEvidence;

// Calls under way for so long are taken for a hang, unless their own time-out is shorter.
inline constexpr double kFlightDeadlineSeconds = 30;

struct FlightHistory {
  // One a dump, then one a missing rank (ProcessState::kLost); all others run.
  std::vector<RankEvidence> evidence;
  verdict::Setting setting;
  std::vector<std::uint16_t> communicators;  // by team; calls between two ranks have others
  // Ranks whose dump is older than what others completed together with them: the dumps are of
  // different moments, and silence proves nothing.
  std::vector<int> outdated;
  // The dumps are of two runs, by the clocks of their hosts. A call that all must enter ended on
  // one rank, or its time-out passed there, long before another entered it. Or a dump was written
  // before the first call that another holds.
  struct Apart {
    enum class How : std::uint8_t { kEnded, kTimedOut, kWritten };
    int left = 0;  // rank
    How how = How::kEnded;
    int entered = 0;  // rank
    double seconds = 0;
  };
  std::optional<Apart> apart;
  // By dump: calls that PyTorch gave up although its dump says that they are over.
  std::vector<std::vector<const FlightCall*>> given_up;
  double seconds = 0;          // from the newest time in any dump to the moment of the dumps
  bool by_file_times = false;  // that moment is known from the times of the files only
};

// Operations are a kind and a position only: names, sizes and types are compared by
// FindFlightMismatches, which knows PyTorch's. A rank's oldest open call is taken to have started
// when its dump does not record starts, and that of a group whose calls went on beside older ones.
// `deadline_seconds`: as for DiagnoseFlight; the deadline that counts is in the setting.
// kInvalidInput: more groups than a journal can number.
Result<FlightHistory> HistoryOf(const FlightJob& job, std::optional<double> deadline_seconds);

}  // namespace lockstep::flight
