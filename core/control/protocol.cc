#include "core/control/protocol.h"

#include <cstring>
#include <type_traits>

namespace lockstep::control {

// Events travel as their 64 bytes.
static_assert(std::has_unique_object_representations_v<journal::JournalEvent>);

namespace {

void Put(Encoder& encoder, const std::vector<verdict::ByteMark>& marks) {
  encoder.Put(static_cast<std::uint32_t>(marks.size()));
  for (const verdict::ByteMark& mark : marks) encoder.Put(mark.bytes).Put(mark.byte_s);
}

void Get(Decoder& decoder, std::vector<verdict::ByteMark>& marks) {
  const auto count = decoder.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && decoder.ok(); ++i) {
    verdict::ByteMark& mark = marks.emplace_back();
    mark.bytes = decoder.Get<std::uint64_t>();
    mark.byte_s = decoder.Get<double>();
  }
}

void Put(Encoder& encoder, const std::vector<verdict::ByteStep>& steps) {
  encoder.Put(static_cast<std::uint32_t>(steps.size()));
  for (const verdict::ByteStep& step : steps) {
    encoder.Put(step.bytes).Put(step.after_s).Put(step.by_s);
    encoder.Put(step.waited_s).Put(step.limited_s).Put(step.round_trip_s);
  }
}

void Get(Decoder& decoder, std::vector<verdict::ByteStep>& steps) {
  const auto count = decoder.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && decoder.ok(); ++i) {
    verdict::ByteStep& step = steps.emplace_back();
    step.bytes = decoder.Get<std::uint64_t>();
    for (double* value :
         {&step.after_s, &step.by_s, &step.waited_s, &step.limited_s, &step.round_trip_s}) {
      *value = decoder.Get<double>();
    }
  }
}

void Put(Encoder& encoder, const verdict::TcpSocket& socket) {
  encoder.Text(socket.local).Text(socket.remote).Put(socket.written).Put(socket.received);
  encoder.Put(socket.unread).Put(socket.retransmits).Put(socket.round_trip_us);
  encoder.Put(socket.least_round_trip_us).Put(socket.last_received_ms);
  encoder.Put(static_cast<std::uint8_t>(socket.closed)).Put(socket.arrivals);
  encoder.Put(socket.limited_s).Put(socket.waited_s);
  Put(encoder, socket.written_steps);
  Put(encoder, socket.received_steps);
  encoder.Put(static_cast<std::uint8_t>(socket.relayed));
  for (const verdict::RelayLedger* ledger : {&socket.out, &socket.in}) {
    encoder.Put(ledger->lost);
    Put(encoder, ledger->told);
  }
}

void Get(Decoder& decoder, verdict::TcpSocket& socket) {
  socket.local = decoder.Text();
  socket.remote = decoder.Text();
  socket.written = decoder.Get<std::uint64_t>();
  socket.received = decoder.Get<std::uint64_t>();
  socket.unread = decoder.Get<std::uint32_t>();
  socket.retransmits = decoder.Get<std::uint32_t>();
  socket.round_trip_us = decoder.Get<std::uint32_t>();
  socket.least_round_trip_us = decoder.Get<std::uint32_t>();
  socket.last_received_ms = decoder.Get<std::uint32_t>();
  socket.closed = decoder.Get<std::uint8_t>() != 0;
  socket.arrivals = decoder.Get<std::uint32_t>();
  socket.limited_s = decoder.Get<double>();
  socket.waited_s = decoder.Get<double>();
  Get(decoder, socket.written_steps);
  Get(decoder, socket.received_steps);
  socket.relayed = decoder.Get<std::uint8_t>() != 0;
  for (verdict::RelayLedger* ledger : {&socket.out, &socket.in}) {
    ledger->lost = decoder.Get<std::uint32_t>();
    Get(decoder, ledger->told);
  }
}

}  // namespace

std::string EncodeMessage(const Message& message) {
  return Encoder().Put(message.type).Raw(message.payload).Take();
}

Message DecodeMessage(std::string_view bytes) {
  Decoder decoder(bytes);
  const auto type = decoder.Get<std::uint32_t>();
  return Message{type, std::string(decoder.rest())};
}

void Put(Encoder& encoder, const journal::Journal& journal) {
  encoder.Put(journal.missed).Put(static_cast<std::uint64_t>(journal.events.size()));
  encoder.Raw({reinterpret_cast<const char*>(journal.events.data()),
               journal.events.size() * sizeof(journal::JournalEvent)});
}

bool Get(Decoder& decoder, journal::Journal& journal) {
  journal.missed = decoder.Get<std::uint64_t>();
  const auto events = decoder.Get<std::uint64_t>();
  if (events > decoder.rest().size() / sizeof(journal::JournalEvent)) {
    decoder.Raw(decoder.rest().size() + 1);
    return false;
  }
  const std::string_view bytes = decoder.Raw(events * sizeof(journal::JournalEvent));
  journal.events.resize(events);
  if (events > 0) std::memcpy(journal.events.data(), bytes.data(), bytes.size());
  return decoder.ok();
}

void Put(Encoder& encoder, const verdict::RankEvidence& evidence) {
  encoder.Put(std::int32_t{evidence.rank})
      .Put(static_cast<std::uint8_t>(evidence.state))
      .Put(std::int32_t{evidence.exit_code})
      .Put(std::int32_t{evidence.signal})
      .Put(evidence.seconds_silent)
      .Put(static_cast<std::uint8_t>(evidence.idle))
      .Put(static_cast<std::uint8_t>(evidence.asleep))
      .Text(evidence.error)
      .Text(evidence.system);
  encoder.Put(static_cast<std::uint32_t>(evidence.sockets.size()));
  for (const verdict::TcpSocket& socket : evidence.sockets) Put(encoder, socket);
  encoder.Put(evidence.echo_s);
  encoder.Text(evidence.gpu_bus).Put(static_cast<std::uint64_t>(evidence.device.method));
  encoder.Put(static_cast<std::uint32_t>(evidence.device.marks.size()));
  for (const journal::DeviceMark& mark : evidence.device.marks) {
    encoder.Put(mark.communicator).Put(mark.started).Put(mark.ended);
  }
  Put(encoder, evidence.journal);
}

bool Get(Decoder& decoder, verdict::RankEvidence& evidence) {
  evidence.rank = decoder.Get<std::int32_t>();
  evidence.state = static_cast<verdict::ProcessState>(decoder.Get<std::uint8_t>());
  evidence.exit_code = decoder.Get<std::int32_t>();
  evidence.signal = decoder.Get<std::int32_t>();
  evidence.seconds_silent = decoder.Get<double>();
  evidence.idle = decoder.Get<std::uint8_t>() != 0;
  evidence.asleep = decoder.Get<std::uint8_t>() != 0;
  evidence.error = decoder.Text();
  evidence.system = decoder.Text();
  const auto sockets = decoder.Get<std::uint32_t>();
  evidence.sockets.clear();
  for (std::uint32_t i = 0; i < sockets && decoder.ok(); ++i) {
    Get(decoder, evidence.sockets.emplace_back());
  }
  evidence.echo_s = decoder.Get<double>();
  evidence.gpu_bus = decoder.Text();
  evidence.device.method = static_cast<journal::MarkMethod>(decoder.Get<std::uint64_t>());
  const auto marks = decoder.Get<std::uint32_t>();
  evidence.device.marks.clear();
  for (std::uint32_t i = 0; i < marks && decoder.ok(); ++i) {
    journal::DeviceMark& mark = evidence.device.marks.emplace_back();
    mark.communicator = decoder.Get<std::uint16_t>();
    mark.started = decoder.Get<std::uint64_t>();
    mark.ended = decoder.Get<std::uint64_t>();
  }
  return Get(decoder, evidence.journal) && evidence.state <= verdict::ProcessState::kLost;
}

void Put(Encoder& encoder, const journal::GpuSamples& samples) {
  encoder.Put(std::int32_t{samples.rank}).Put(samples.missed);
  encoder.Put(static_cast<std::uint32_t>(samples.buses.size()));
  for (const std::string& bus : samples.buses) encoder.Text(bus);
  encoder.Put(static_cast<std::uint64_t>(samples.samples.size()));
  encoder.Raw({reinterpret_cast<const char*>(samples.samples.data()),
               samples.samples.size() * sizeof(journal::GpuSample)});
}

bool Get(Decoder& decoder, journal::GpuSamples& samples) {
  samples = {};
  samples.rank = decoder.Get<std::int32_t>();
  samples.missed = decoder.Get<std::uint64_t>();
  const auto buses = decoder.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < buses && decoder.ok(); ++i) {
    samples.buses.push_back(decoder.Text());
  }
  const auto count = decoder.Get<std::uint64_t>();
  if (!decoder.ok() || count > decoder.rest().size() / sizeof(journal::GpuSample)) return false;
  const std::string_view bytes = decoder.Raw(count * sizeof(journal::GpuSample));
  samples.samples.resize(count);
  if (count > 0) std::memcpy(samples.samples.data(), bytes.data(), bytes.size());
  return decoder.ok();
}

void Put(Encoder& encoder, const journal::WorkerLog& log) {
  encoder.Put(std::int32_t{log.rank}).Put(std::int32_t{log.lifetime}).Text(log.path);
  encoder.Put(log.bytes).Put(log.cut_bytes).Text(log.text);
}

bool Get(Decoder& decoder, journal::WorkerLog& log) {
  log.rank = decoder.Get<std::int32_t>();
  log.lifetime = decoder.Get<std::int32_t>();
  log.path = decoder.Text();
  log.bytes = decoder.Get<std::int64_t>();
  log.cut_bytes = decoder.Get<std::int64_t>();
  log.text = decoder.Text();
  return decoder.ok();
}

void Put(Encoder& encoder, const AgentInfo& info) {
  encoder.Put(std::int32_t{info.rank}).Text(info.host).Text(info.boot_id);
  encoder.Put(std::int32_t{info.pid}).Put(info.memory_available_bytes);
  encoder.Put(static_cast<std::uint32_t>(info.cpus.size()));
  for (const int cpu : info.cpus) encoder.Put(std::int32_t{cpu});
}

bool Get(Decoder& decoder, AgentInfo& info) {
  info.rank = decoder.Get<std::int32_t>();
  info.host = decoder.Text();
  info.boot_id = decoder.Text();
  info.pid = decoder.Get<std::int32_t>();
  info.memory_available_bytes = decoder.Get<std::int64_t>();
  const auto cpus = decoder.Get<std::uint32_t>();
  info.cpus.clear();
  for (std::uint32_t i = 0; i < cpus && decoder.ok(); ++i) {
    info.cpus.push_back(decoder.Get<std::int32_t>());
  }
  return decoder.ok();
}

void Put(Encoder& encoder, const Status& status) {
  encoder.Put(static_cast<std::uint32_t>(status.code())).Text(status.message());
}

bool Get(Decoder& decoder, Status& status) {
  const auto code = decoder.Get<std::uint32_t>();
  const std::string message = decoder.Text();
  if (!decoder.ok() || code > static_cast<std::uint32_t>(StatusCode::kSystemFailed)) return false;
  status = Status(static_cast<StatusCode>(code), message);
  return true;
}

}  // namespace lockstep::control
