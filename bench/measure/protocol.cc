// Encoding and decoding of orders and records. Both ends are the same program on one kind of
// machine, so values are written as they lie in memory.
#include "bench/measure/protocol.h"

#include <cstring>
#include <type_traits>

namespace lockstep::bench::measure {
namespace {

enum RecordType : std::uint32_t { kSampleRecord = 1, kBatchRecord, kWrongRecord, kPartsRecord };

template <typename T>
void Put(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
bool Take(std::string_view& bytes, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

void PutText(std::string& bytes, const std::string& text) {
  Put(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

bool TakeText(std::string_view& bytes, std::string& text) {
  std::uint32_t size = 0;
  if (!Take(bytes, size) || bytes.size() < size) return false;
  text = std::string(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return true;
}

void PutHeader(std::string& bytes, RecordType type, std::size_t size) {
  Put(bytes, static_cast<std::uint32_t>(type));
  Put(bytes, static_cast<std::uint32_t>(size));
}

bool TakeWrong(std::string_view bytes, WrongRecord& record) {
  return Take(bytes, record.case_index) && Take(bytes, record.warmup) &&
         Take(bytes, record.operation) && Take(bytes, record.element) &&
         TakeText(bytes, record.expected) && TakeText(bytes, record.got);
}

void Dispatch(std::uint32_t type, std::string_view body, const RecordHandlers& handlers) {
  if (type == kSampleRecord) {
    SampleRecord record;
    LOCKSTEP_CHECK(Take(body, record), "sample record");
    handlers.sample(record);
  } else if (type == kBatchRecord) {
    BatchRecord record;
    LOCKSTEP_CHECK(Take(body, record), "batch record");
    handlers.batch(record);
  } else if (type == kPartsRecord) {
    PartsRecord record;
    LOCKSTEP_CHECK(Take(body, record.case_index), "parts record");
    double value = 0;
    while (Take(body, value)) record.values.push_back(value);
    handlers.parts(record);
  } else {
    WrongRecord record;
    LOCKSTEP_CHECK(type == kWrongRecord && TakeWrong(body, record), "wrong record");
    handlers.wrong(record);
  }
}

}  // namespace

std::string EncodeRound(const Round& round) {
  std::string bytes;
  Put(bytes, round.number);
  for (const Batch& batch : round.batches) Put(bytes, batch);
  return bytes;
}

Result<Round> DecodeRound(std::string_view bytes) {
  Round round;
  if (!Take(bytes, round.number) || bytes.size() % sizeof(Batch) != 0) {
    return InvalidInput("a round's order cannot be read: the agent runs another version");
  }
  Batch batch;
  while (Take(bytes, batch)) round.batches.push_back(batch);
  return round;
}

std::string EncodeError(const Status& status) {
  std::string bytes;
  Put(bytes, static_cast<std::uint32_t>(status.code()));
  return bytes + status.message();
}

Status DecodeError(std::string_view bytes) {
  std::uint32_t code = 0;
  if (!Take(bytes, code)) return SystemFailed("a worker reported an error without a text");
  return Status(static_cast<StatusCode>(code), std::string(bytes));
}

void AppendTo(std::string& bytes, const SampleRecord& record) {
  PutHeader(bytes, kSampleRecord, sizeof record);
  Put(bytes, record);
}

void AppendTo(std::string& bytes, const BatchRecord& record) {
  PutHeader(bytes, kBatchRecord, sizeof record);
  Put(bytes, record);
}

void AppendTo(std::string& bytes, const WrongRecord& record) {
  std::string body;
  Put(body, record.case_index);
  Put(body, record.warmup);
  Put(body, record.operation);
  Put(body, record.element);
  PutText(body, record.expected);
  PutText(body, record.got);
  PutHeader(bytes, kWrongRecord, body.size());
  bytes += body;
}

void AppendTo(std::string& bytes, const PartsRecord& record) {
  const std::size_t size = record.values.size() * sizeof(double);
  PutHeader(bytes, kPartsRecord, sizeof record.case_index + size);
  Put(bytes, record.case_index);
  bytes.append(reinterpret_cast<const char*>(record.values.data()), size);
}

void ForEachRecord(std::string_view bytes, const RecordHandlers& handlers) {
  std::uint32_t type = 0;
  std::uint32_t size = 0;
  while (Take(bytes, type) && Take(bytes, size) && bytes.size() >= size) {
    Dispatch(type, bytes.substr(0, size), handlers);
    bytes.remove_prefix(size);
  }
}

}  // namespace lockstep::bench::measure
