// What the scheduler and its workers say to each other, and the records a worker leaves in its
// outbox. Control goes by message; data goes through shared memory and so survives the worker.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"

namespace lockstep::bench::measure {

enum MessageType : std::uint32_t {
  kPlanMessage = 1,   // scheduler: the plan (JSON)
  kReadyMessage,      // worker: connected, memory allocated; facts for the environment (JSON)
  kRoundMessage,      // scheduler: EncodeRound
  kRoundDoneMessage,  // worker: all batches of the round are done
  kErrorMessage,      // worker: an error's exit code and text (EncodeError); it leaves next
  kFinishMessage,     // scheduler: finalize and leave
};

// One visit of a case: warm-up iterations, then timed ones.
struct Batch {
  std::uint32_t case_index = 0;
  std::uint32_t warmup = 0;
  std::uint32_t iterations = 0;
  static void Describe(auto& fields, auto& batch) {
    fields(batch.case_index, batch.warmup, batch.iterations);
  }
};

// All batches of a round in the order in which every rank runs them.
struct Round {
  std::uint32_t number = 0;
  std::vector<Batch> batches;
  static void Describe(auto& fields, auto& round) { fields(round.number, round.batches); }
};
std::string EncodeRound(const Round& round);
Result<Round> DecodeRound(std::string_view bytes);

std::string EncodeError(const Status& status);
Status DecodeError(std::string_view bytes);

// One timed iteration of one rank.
struct SampleRecord {
  std::uint32_t case_index = 0;
  std::uint32_t round = 0;
  Ticks entry = 0;
  Ticks exit = 0;
  static void Describe(auto& fields, auto& sample) {
    fields(sample.case_index, sample.round, sample.entry, sample.exit);
  }
};

// The end of a batch: what it cost and what its comparison found.
struct BatchRecord {
  std::uint32_t case_index = 0;
  std::uint32_t round = 0;
  std::uint64_t wall_ticks = 0;  // preparation, warm-up, timed iterations and comparisons
  std::int64_t checked = 0;      // elements compared
  std::int64_t wrong = 0;        // of them, elements that differ
  std::uint32_t iterations = 0;  // warm-up included
  static void Describe(auto& fields, auto& batch) {
    fields(batch.case_index, batch.round, batch.wall_ticks, batch.checked, batch.wrong);
    fields(batch.iterations);
  }
};

// A located wrong element: the first one of an operation of an iteration. A worker leaves a
// bounded number of them for each case; BatchRecord counts all.
struct WrongRecord {
  std::uint32_t case_index = 0;
  bool warmup = false;  // else it belongs to the SampleRecord before it
  std::int64_t operation = 0;
  std::int64_t element = 0;  // of the receive buffer
  std::string expected;
  std::string got;
  static void Describe(auto& fields, auto& wrong) {
    fields(wrong.case_index, wrong.warmup, wrong.operation, wrong.element);
    fields(wrong.expected, wrong.got);
  }
};

// The figures of the iteration of the SampleRecord before it, one for each part of the case.
struct PartsRecord {
  std::uint32_t case_index = 0;
  std::vector<double> values;
  static void Describe(auto& fields, auto& parts) { fields(parts.case_index, parts.values); }
};

// Outbox records are self-delimiting, so a worker that dies between two leaves whole ones.
void AppendTo(std::string& bytes, const SampleRecord& record);
void AppendTo(std::string& bytes, const BatchRecord& record);
void AppendTo(std::string& bytes, const WrongRecord& record);
void AppendTo(std::string& bytes, const PartsRecord& record);

// Calls the handler of each record in `bytes`. An incomplete record at the end is ignored; an
// unknown one is our own mistake (CHECK).
struct RecordHandlers {
  std::function<void(const SampleRecord&)> sample;
  std::function<void(const BatchRecord&)> batch;
  std::function<void(const WrongRecord&)> wrong;
  std::function<void(const PartsRecord&)> parts;
};
void ForEachRecord(std::string_view bytes, const RecordHandlers& handlers);

// Bytes that one SampleRecord takes in the outbox.
inline constexpr std::size_t kSampleRecordBytes = 4 * sizeof(std::uint32_t) + 2 * sizeof(Ticks);

// … and a PartsRecord of so many parts.
constexpr std::size_t PartsRecordBytes(std::size_t parts) {
  return 4 * sizeof(std::uint32_t) + parts * sizeof(double);
}

}  // namespace lockstep::bench::measure
