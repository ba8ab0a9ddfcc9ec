// Orders and records as bytes, in the notation of core/control/codec.h. Both ends are the same
// program on one kind of machine.
#include "bench/measure/protocol.h"

#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/control/codec.h"
#include "core/control/records.h"

namespace lockstep::bench::measure {
namespace {

enum RecordType : std::uint32_t { kSampleRecord = 1, kBatchRecord, kWrongRecord, kPartsRecord };

template <typename Record>
void Append(std::string& bytes, RecordType type, const Record& record) {
  const std::string body = control::Encode(record);
  control::Encoder head;
  head(type, static_cast<std::uint32_t>(body.size()));
  bytes.append(head.Take()).append(body);
}

template <typename Record>
void Hand(const std::string& body, const std::function<void(const Record&)>& handler) {
  const std::optional<Record> record = control::Decode<Record>(body);
  LOCKSTEP_CHECK(record.has_value(), "a record of the outbox");
  handler(*record);
}

}  // namespace

std::string EncodeRound(const Round& round) { return control::Encode(round); }

Result<Round> DecodeRound(std::string_view bytes) {
  if (std::optional<Round> round = control::Decode<Round>(bytes)) return *std::move(round);
  return InvalidInput("a round's order cannot be read: the agent runs another version");
}

std::string EncodeError(const Status& status) { return control::Encode(status); }

Status DecodeError(std::string_view bytes) {
  if (std::optional<Status> status = control::Decode<Status>(bytes)) return *std::move(status);
  return SystemFailed("a worker reported an error without a text");
}

void AppendTo(std::string& bytes, const SampleRecord& record) {
  Append(bytes, kSampleRecord, record);
}
void AppendTo(std::string& bytes, const BatchRecord& record) {
  Append(bytes, kBatchRecord, record);
}
void AppendTo(std::string& bytes, const WrongRecord& record) {
  Append(bytes, kWrongRecord, record);
}
void AppendTo(std::string& bytes, const PartsRecord& record) {
  Append(bytes, kPartsRecord, record);
}

void ForEachRecord(std::string_view bytes, const RecordHandlers& handlers) {
  control::Decoder decoder(bytes);
  while (true) {
    const auto type = decoder.Get<RecordType>();
    const std::string body = decoder.Text();
    if (!decoder.ok()) return;
    if (type == kSampleRecord) Hand(body, handlers.sample);
    if (type == kBatchRecord) Hand(body, handlers.batch);
    if (type == kWrongRecord) Hand(body, handlers.wrong);
    if (type == kPartsRecord) Hand(body, handlers.parts);
    LOCKSTEP_CHECK(type >= kSampleRecord && type <= kPartsRecord, "a record of the outbox");
  }
}

}  // namespace lockstep::bench::measure
