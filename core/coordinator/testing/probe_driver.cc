// Tools with which scenarios conduct the probe's workers; an expectation that fails ends the
// program.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/coordinator/testing/probe.h"

namespace lockstep::coordinator {

ProbeDriver::ProbeDriver(Coordinator& coordinator, std::uint64_t seed)
    : coordinator_(coordinator),
      random_(seed),
      pids_(static_cast<std::size_t>(coordinator.size())),
      data_(static_cast<std::size_t>(coordinator.size())) {
  Expect(coordinator.agents().size() == pids_.size(), "one agent a rank");
  for (int rank = 0; rank < coordinator.size(); ++rank) {
    const control::AgentInfo& info = coordinator.agents()[static_cast<std::size_t>(rank)];
    Expect(info.rank == rank && info.pid > 0 && !info.host.empty() && !info.boot_id.empty() &&
               !info.cpus.empty() && info.memory_available_bytes > 0,
           "agents tell of their machines");
  }
}

void ProbeDriver::Expect(bool condition, const std::string& what) {
  if (condition) return;
  fmt::print("FAILED: {}\n", what);
  std::fflush(stdout);
  std::_Exit(20);
}

Event ProbeDriver::Next(Deadline deadline) {
  Event event = coordinator_.Next(deadline);
  if (event.kind == EventKind::kData) {
    data_[static_cast<std::size_t>(event.rank)] += event.message.payload;
  }
  return event;
}

void ProbeDriver::Start() {
  for (std::string& data : data_) data.clear();
  const Status status = coordinator_.StartWorkers();
  Expect(status.ok(), status.message());
  for (int i = 0; i < size(); ++i) {
    const Event event = Await(EventKind::kMessage, -1);
    Expect(event.message.type == kReady, "workers are ready first");
    pids_[static_cast<std::size_t>(event.rank)] = std::atoi(event.message.payload.c_str());
  }
}

void ProbeDriver::StartStreams() {
  Start();
  OrderAll("stream 0");
  for (int rank = 0; rank < size(); ++rank) {
    if (data_[static_cast<std::size_t>(rank)].empty()) Await(EventKind::kData, rank);
  }
}

void ProbeDriver::Order(int rank, const std::string& text) {
  coordinator_.Send(rank, control::Message{kOrder, text});
}

void ProbeDriver::OrderAll(const std::string& text) {
  coordinator_.SendAll(control::Message{kOrder, text});
}

Event ProbeDriver::Await(EventKind kind, int rank, std::initializer_list<EventKind> not_before) {
  const Deadline deadline = Soon();
  while (true) {
    const Event event = Next(deadline);
    if (event.kind == kind && (rank < 0 || event.rank == rank)) return event;
    const bool wrong = std::ranges::count(not_before, event.kind) > 0;
    Expect(!deadline.Passed() && !wrong,
           fmt::format("an event of kind {} of rank {}, and none of kind {} before",
                       static_cast<int>(kind), rank, static_cast<int>(event.kind)));
  }
}

Event ProbeDriver::AwaitAny(std::initializer_list<EventKind> kinds) {
  const Deadline deadline = Soon();
  while (true) {
    const Event event = Next(deadline);
    if (std::ranges::count(kinds, event.kind) > 0) return event;
    Expect(!deadline.Passed(), "one of the kinds of events that are awaited");
  }
}

std::vector<std::string> ProbeDriver::AwaitEchoes() {
  std::vector<std::string> echoes(pids_.size());
  for (int i = 0; i < size();) {
    const Event event = Await(EventKind::kMessage, -1);
    if (event.message.type != kEcho) continue;
    echoes[static_cast<std::size_t>(event.rank)] = event.message.payload;
    ++i;
  }
  return echoes;
}

Event ProbeDriver::NextButTalk(double seconds) {
  const Deadline deadline = Deadline::AfterSeconds(seconds);
  while (true) {
    const Event event = Next(deadline);
    if (event.kind != EventKind::kMessage && event.kind != EventKind::kData) return event;
  }
}

void ProbeDriver::ExpectQuiet(double seconds) {
  const Event event = NextButTalk(seconds);
  Expect(event.kind == EventKind::kTimeout,
         fmt::format("no event of kind {} of rank {}", static_cast<int>(event.kind), event.rank));
}

void ProbeDriver::ExpectStreams(double silence_seconds, int stopped) {
  constexpr int kMostWaits = 9;
  for (int waits = 0; waits < kMostWaits; ++waits) {
    const Event event = NextButTalk(silence_seconds + 0.5);
    if (event.kind == EventKind::kTimeout) return;
    Expect(event.kind == EventKind::kOverdue && event.rank != stopped,
           fmt::format("no event of kind {} of rank {}", static_cast<int>(event.kind), event.rank));
    ExpectGoesOn(event.rank, silence_seconds);
  }
  Expect(false, "who streams is not overdue again and again");
}

void ProbeDriver::ExpectGoesOn(int rank, double silence_seconds) {
  // The first bytes may have been in the outbox all the time.
  const std::size_t enough = data_[static_cast<std::size_t>(rank)].size() + 2 * kOutboxBytes;
  while (data_[static_cast<std::size_t>(rank)].size() < enough) Await(EventKind::kData, rank);
  const verdict::RankEvidence now = coordinator_.Glance()[static_cast<std::size_t>(rank)];
  Expect(now.seconds_silent - now.starved_s < silence_seconds ||
             coordinator_.SecondsAwake() < silence_seconds,
         fmt::format("rank {} streams, so it is not silent for {} s", rank, now.seconds_silent));
}

std::size_t ProbeDriver::CheckData(int rank) {
  const std::string& data = data_[static_cast<std::size_t>(rank)];
  constexpr std::size_t kRecord = 24;
  Expect(data.size() % kRecord == 0, "only whole records");
  for (std::uint64_t i = 0; i < data.size() / kRecord; ++i) {
    std::uint64_t record[3];
    std::memcpy(record, data.data() + i * kRecord, kRecord);
    const bool whole = record[0] == i && record[1] == ~i && record[2] == i * 3;
    if (!whole) Expect(false, fmt::format("record {} of rank {} is whole, in order", i, rank));
  }
  return data.size() / kRecord;
}

void ProbeDriver::End() {
  coordinator_.EndWorkers();
  while (true) {
    const Event event = Next(Deadline::AfterNs(0));
    if (event.kind == EventKind::kTimeout) return;
  }
}

}  // namespace lockstep::coordinator
