// What a rank in a process of its own did: written before it is done, read when all are over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/trace_ddp/rank_processes.h"
#include "cli/trace_ddp/run.h"
#include "core/base/status.h"
#include "core/ddp/observer.h"
#include "core/journal/event.h"

namespace lockstep::cli::trace_ddp {

// From `ns` of CLOCK_MONOTONIC on the rank was in this phase, with so many calls enqueued and
// begun.
struct Moment {
  std::int64_t ns = 0;
  journal::Phase phase = journal::Phase::kStart;
  std::size_t calls = 0;
  std::size_t begun = 0;
  bool inside = false;  // gloo was at work for the one begun last
};

struct RankHistory {
  TracedRank trace = {};  // its calls; what it raised and its tensors where it told its end
  std::vector<Moment> moments = {};
  std::optional<std::int64_t> failed_ns = {};  // when its first call failed
  std::optional<std::int64_t> end_ns = {};     // when it told its end
  Status environment = OkStatus();             // what the machine lacked
  EndedRank process = {};
};

// Of one rank, in its process. Any thread may write.
class HistoryWriter final : public ddp::EngineObserver {
 public:
  explicit HistoryWriter(const RankSeat& seat) : seat_(seat) {}

  void OnSection(const ddp::Section& section) override;
  void OnPhase(journal::Phase phase) override;
  void OnCollective(const collective::Operation& operation,
                    const journal::Annotation& annotation) override;
  // Around the library's call.
  void OnBegin();
  void OnDone(bool well);
  void OnEnd(const TracedRank& trace);
  void OnEnvironment(const Status& status);

 private:
  const RankSeat& seat_;
};

// The record of OnEnvironment.
std::string EnvironmentRecord(const Status& status);

// What is missing at the end was not written any more.
RankHistory ReadHistory(EndedRank ended);

struct Limits {
  double timeout_seconds = 0;   // of a call
  double connect_seconds = 0;   // before the first phase
  double patience_seconds = 0;  // without anything new of any rank
};

// What is known of each rank's end. An error: the machine lacked something, which is no rank's
// fault. Time-outs prove no hang, since a rank may only be slow: a hang is suspected where all
// others waited, too, or had ended, not all in one collective, and nothing changed in the second
// half of the time-out, nor did a call end well after it.
Result<TracedRanks> Conclude(const std::vector<RankHistory>& histories, const Limits& limits);

}  // namespace lockstep::cli::trace_ddp
