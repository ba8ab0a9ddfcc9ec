// What a measurement leaves, besides the samples in its book.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/stalls.h"
#include "core/verdict/judge.h"
#include "results/store/run.h"

namespace lockstep::bench::measure {

// A failure that ended a lifetime of the workers.
struct Interruption {
  std::optional<std::size_t> case_index = {};  // the case it cost; none: between cases
  int repetition = 0;
  int lifetime = 0;
  verdict::Judgement judgement = {};
};

// A type of this room, so that this room can describe how it travels.
struct LocatedWrong : results::store::WrongResult {};

// What comparing a case's data found, on all ranks.
struct DataChecks {
  std::int64_t checked = 0;
  std::int64_t wrong_elements = 0;
  std::vector<LocatedWrong> wrong = {};
};

// Of a repetition that is over.
struct RepetitionEnd {
  std::uint32_t rounds = 0;           // begun by then: they are counted on through all repetitions
  std::vector<DataChecks> data = {};  // one a case
};

struct Measurement {
  std::vector<std::vector<std::string>> stopped_by = {};  // repetition x case
  std::vector<RepetitionEnd> ends = {};
  std::vector<Interruption> interruptions = {};
  std::vector<Stall> stalls = {};
  std::vector<results::store::RankHistory> history = {};
  std::string worker_facts = {};  // JSON of rank 0's kReadyMessage
  bool terminated = false;        // told to end by a signal
};

}  // namespace lockstep::bench::measure
