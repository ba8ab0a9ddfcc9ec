// Frames, payloads, and the shared memory after a SIGKILL.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/control/channel.h"
#include "core/control/codec.h"
#include "core/control/frames.h"
#include "core/control/outbox.h"
#include "core/control/segment.h"

namespace lockstep::control {
namespace {

struct Ends {
  Ends(std::size_t most = kMostFrameBytes) : Ends(Pair(), most) {}
  Channel a;
  int raw;  // the other end, for good and bad bytes
  Fd owner;

 private:
  static std::pair<int, int> Pair() {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    return {pair[0], pair[1]};
  }
  Ends(std::pair<int, int> pair, std::size_t most)
      : a(Fd(pair.first), most), raw(pair.second), owner(pair.second) {}
};

void WriteAll(int fd, const std::string& bytes) {
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

TEST(Channel, FramesInPieces) {
  Ends ends;
  std::string bytes = Encoder().Put(3u).Put(7u).Raw("abc").Put(0u).Put(8u).Take();
  for (const char byte : bytes) {
    EXPECT_FALSE(ends.a.Take().has_value());
    WriteAll(ends.raw, std::string(1, byte));
    ends.a.Fill();
    if (std::optional<Frame> frame = ends.a.Take()) {
      EXPECT_EQ(frame->type, frame->payload.empty() ? 8u : 7u);
      if (frame->type == 7) {
        EXPECT_EQ(frame->payload, "abc");
      }
    }
  }
  EXPECT_TRUE(ends.a.open());
}

TEST(Channel, RefusesFramesThatAreTooLarge) {
  Ends ends(100);
  WriteAll(ends.raw, Encoder().Put(101u).Put(7u).Take());
  ends.a.Fill();
  EXPECT_FALSE(ends.a.Take().has_value());
  EXPECT_FALSE(ends.a.open());
}

enum class Does { kReads, kWrites };

// One end of a TCP connection, after the other one was reset, or closed.
Channel AfterReset(const char* from, bool closes, Does first) {
  Fd listener(socket(AF_INET, SOCK_STREAM, 0)), client(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in there = here;
  there.sin_addr.s_addr = inet_addr(from);
  socklen_t length = sizeof here;
  auto* const address = reinterpret_cast<sockaddr*>(&here);
  EXPECT_EQ(bind(listener.get(), address, length), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), address, &length), 0);
  EXPECT_EQ(bind(client.get(), reinterpret_cast<sockaddr*>(&there), length), 0);
  EXPECT_EQ(connect(client.get(), address, length), 0);
  Channel channel(Fd(accept(listener.get(), nullptr, nullptr)), kMostFrameBytes);
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  if (!closes) {
    EXPECT_EQ(setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  }
  client.Reset();
  pollfd heard{channel.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&heard, 1, -1), 1);
  if (first == Does::kWrites) channel.Send(1, "heartbeat");
  while (channel.open()) channel.Fill();
  return channel;
}

// 127.0.0.2 stands for another host: what is between two hosts may reset a connection.
TEST(Channel, AResetProvesAnEndWithinAHostOnly) {
  for (const Does first : {Does::kReads, Does::kWrites}) {
    EXPECT_EQ(LossOf(AfterReset("127.0.0.1", false, first)), verdict::Loss::kClosed);
    EXPECT_EQ(LossOf(AfterReset("127.0.0.2", false, first)), verdict::Loss::kReset);
    EXPECT_EQ(LossOf(AfterReset("127.0.0.2", true, first)), verdict::Loss::kClosed);
  }
  Ends local;
  WriteAll(local.raw, "unread");
  local.a.Send(1, "unread by the other end, which is reset by that");
  local.owner.Reset();
  while (local.a.open()) local.a.Fill();
  EXPECT_EQ(local.a.error(), ECONNRESET);
  EXPECT_EQ(LossOf(local.a), verdict::Loss::kClosed);
}

TEST(Channel, WhatCameBeforeTheEndCanBeTaken) {
  Ends ends;
  WriteAll(ends.raw, Encoder().Put(2u).Put(9u).Raw("xy").Put(5u).Take());
  ends.owner.Reset();
  ends.a.Send(1, "into the void");
  ends.a.Fill();
  EXPECT_FALSE(ends.a.open());
  const std::optional<Frame> frame = ends.a.Take();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->payload, "xy");
  EXPECT_FALSE(ends.a.Take().has_value());
}

TEST(Channel, NeverWaitsForASlowReader) {
  Ends ends;
  const std::string megabyte(1 << 20, 'm');
  for (int i = 0; i < 40; ++i) ends.a.Send(1, megabyte);
  EXPECT_TRUE(ends.a.has_unsent());
  EXPECT_FALSE(ends.a.FlushUntil(Deadline::AfterSeconds(0.05)));
  Channel b(std::move(ends.owner), kMostFrameBytes);
  for (int frames = 0; frames < 40;) {
    ends.a.Flush();
    b.Fill();
    while (const std::optional<Frame> frame = b.Take()) {
      ASSERT_EQ(frame->payload, megabyte);
      ++frames;
    }
  }
  // A reader that takes nothing for too long is given up.
  for (int i = 0; i < 300; ++i) ends.a.Send(1, megabyte);
  EXPECT_FALSE(ends.a.open());
}

verdict::RankEvidence SomeEvidence() {
  verdict::RankEvidence evidence;
  evidence.rank = 3;
  evidence.state = verdict::ProcessState::kSignalled;
  evidence.signal = 9;
  evidence.exit_code = -2;
  evidence.seconds_silent = 1.5;
  evidence.idle = true;
  evidence.asleep = true;
  evidence.error = "an error";
  evidence.sockets = {{"127.0.0.1:1%host", "10.0.0.1:2", 1, 2, 3, 4, 5, 6}, {"[::1]:1%host", ""}};
  evidence.sockets[1].received_steps = {{1, 0.25, 0.5}, {2, 0.75, 1, 2, 3, 4}};
  evidence.sockets[1].relayed = true;
  evidence.sockets[1].in = {{{7, 0.5}}, 3};
  evidence.echo_s = 0.125;
  evidence.sockets[1].closed = true;
  evidence.system = std::string("null\0inside", 11);
  evidence.journal.missed = 17;
  evidence.journal.events.resize(3);
  evidence.journal.events[2].sequence = 99;
  return evidence;
}

TEST(Codec, EvidenceThereAndBack) {
  const std::string bytes = Encode(SomeEvidence());
  const auto decoded = Decode<verdict::RankEvidence>(bytes);
  ASSERT_TRUE(decoded.has_value());
  const verdict::RankEvidence& back = *decoded;
  EXPECT_EQ(back.rank, 3);
  EXPECT_EQ(back.state, verdict::ProcessState::kSignalled);
  EXPECT_EQ(back.exit_code, -2);
  EXPECT_EQ(back.system, SomeEvidence().system);
  ASSERT_EQ(back.sockets.size(), 2u);
  EXPECT_EQ(back.sockets[0].local, "127.0.0.1:1%host");
  EXPECT_EQ(back.sockets[0].remote, "10.0.0.1:2");
  EXPECT_EQ(back.sockets[0].received, 2u);
  EXPECT_EQ(back.sockets[0].round_trip_us, 5u);
  EXPECT_EQ(back.sockets[0].least_round_trip_us, 6u);
  ASSERT_EQ(back.sockets[1].received_steps.size(), 2u);
  EXPECT_EQ(back.sockets[1].received_steps[1].by_s, 1);
  EXPECT_EQ(back.sockets[1].received_steps[1].round_trip_s, 4);
  EXPECT_TRUE(back.sockets[1].relayed);
  ASSERT_EQ(back.sockets[1].in.told.size(), 1u);
  EXPECT_EQ(back.sockets[1].in.lost, 3u);
  EXPECT_EQ(back.echo_s, 0.125);
  EXPECT_TRUE(back.sockets[1].closed);
  EXPECT_TRUE(back.idle && back.asleep);
  ASSERT_EQ(back.journal.events.size(), 3u);
  EXPECT_EQ(back.journal.events[2].sequence, 99u);
  EXPECT_EQ(back.journal.missed, 17u);
  // Cut anywhere, it is refused.
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string_view cut = std::string_view(bytes).substr(0, size);
    EXPECT_FALSE(Decode<verdict::RankEvidence>(cut).has_value()) << size;
  }
}

TEST(Codec, RandomBytesHarmNobody) {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.Below(200), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Next() >> (random.Below(2) * 60));
    Decode<verdict::RankEvidence>(bytes);
    Decode<AgentInfo>(bytes);
    Decode<StartedReport>(bytes);
  }
}

template <typename F>
void ExpectWholeOrNotAtAll() {
  const std::string bytes = Encode(F());
  EXPECT_TRUE(Decode<F>(bytes).has_value());
  EXPECT_FALSE(Decode<F>(bytes + "x").has_value());
  EXPECT_FALSE(Decode<F>("").has_value());
}
template <typename... Frames>
void ExpectEachWholeOrNotAtAll() {
  (ExpectWholeOrNotAtAll<Frames>(), ...);
}

TEST(Codec, EveryFrameIsTakenWholeOrNotAtAll) {
  ExpectEachWholeOrNotAtAll<StartOrder, StartedReport, CollectOrder, EvidenceReport, JournalOrder,
                            JournalReport, GpusOrder, GpusReport, LogReport, EndOrder, EndedReport,
                            SignalOrder, ExitedReport, SignalledReport, StoppedReport, FaultOrder,
                            FaultReport, ClockProbe, ClockReport, MeetingPut, MeetingGet,
                            MeetingValue, GatherOrder, GatheredReport, FailoverFrame, JoinWords>();
}

TEST(Codec, EnumerationsAndNumbersThatCannotBeAreRefused) {
  FaultReport fault;
  fault.news = static_cast<FaultNews>(3);
  EXPECT_FALSE(Decode<FaultReport>(Encode(fault)).has_value());
  ClockReport clock;
  clock.reading.emplace().ns_per_tick = 0;
  EXPECT_FALSE(Decode<ClockReport>(Encode(clock)).has_value());
}

TEST(Codec, WhoeverNestsForEverIsRefused) {
  verdict::Finding finding;
  for (int depth = 0; depth < 4; ++depth) {
    verdict::Finding outer;
    outer.evidence = {finding};
    finding = outer;
  }
  EXPECT_TRUE(Decode<verdict::Finding>(Encode(finding)).has_value());
  for (int depth = 0; depth < 40; ++depth) {
    verdict::Finding outer;
    outer.evidence = {finding};
    finding = outer;
  }
  EXPECT_FALSE(Decode<verdict::Finding>(Encode(finding)).has_value());
}

TEST(Codec, Messages) {
  const Message back = Decode<Message>(Encode(Message{77, "payload"})).value();
  EXPECT_EQ(back.type, 77u);
  EXPECT_EQ(back.payload, "payload");
  EXPECT_FALSE(Decode<Message>("").has_value());
}

TEST(Outbox, WrapsAndRefusesWhatDoesNotFit) {
  alignas(64) std::byte memory[128 + 64] = {};
  OutboxWriter writer(memory, 64);
  OutboxReader reader(memory, 64);
  EXPECT_EQ(reader.Drain(100), "");
  std::string expected;
  for (int round = 0; round < 50; ++round) {
    const std::string record(static_cast<std::size_t>(round % 40), static_cast<char>('a' + round));
    const auto bytes = std::as_bytes(std::span(record));
    ASSERT_TRUE(writer.Append(bytes));
    EXPECT_EQ(writer.free_bytes(), 64 - record.size());
    if (record.size() > 32) {
      EXPECT_FALSE(writer.Append(bytes));
    }
    EXPECT_EQ(reader.Drain(10) + reader.Drain(100), record);
  }
  EXPECT_FALSE(writer.Append(std::vector<std::byte>(65)));
  EXPECT_TRUE(writer.Append(std::vector<std::byte>(64)));
  EXPECT_EQ(writer.free_bytes(), 0u);
}

TEST(Outbox, NonsenseInTheHeaderHarmsNobody) {
  alignas(64) std::byte memory[128 + 64] = {};
  OutboxReader reader(memory, 64);
  const std::uint64_t nonsense = 1'000'000;
  std::memcpy(memory, &nonsense, sizeof nonsense);
  EXPECT_EQ(reader.Drain(100), "");
}

// Appends records of growing length, each full of its own number, until killed.
[[noreturn]] void AppendForEver(Outbox& outbox) {
  for (std::uint64_t i = 0;; ++i) {
    std::vector<std::byte> record(9 + i % 200, static_cast<std::byte>(i));
    record[0] = static_cast<std::byte>(record.size() - 9);
    std::memcpy(record.data() + 1, &i, sizeof i);
    while (!outbox.Append(record)) {
    }
  }
}

// Returns how many whole records there are, -1 if one is torn.
long CheckRecords(const std::string& bytes) {
  std::uint64_t expected = 0;
  for (std::size_t at = 0; at < bytes.size(); ++expected) {
    if (bytes.size() - at < 9) return -1;
    const auto filler = static_cast<unsigned char>(bytes[at]);
    std::uint64_t number;
    std::memcpy(&number, bytes.data() + at + 1, sizeof number);
    if (number != expected || filler != expected % 200) return -1;
    if (bytes.size() - at < 9u + filler) return -1;
    for (std::size_t i = 0; i < filler; ++i) {
      if (bytes[at + 9 + i] != static_cast<char>(number)) return -1;
    }
    at += 9u + filler;
  }
  return static_cast<long>(expected);
}

TEST(Outbox, NoTornRecordAfterSigkill) {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    const auto segment = Segment::Create(16, 1 << 14);
    ASSERT_TRUE(segment.ok()) << segment.status().message();
    OutboxReader reader((*segment)->outbox(), 1 << 14);
    const pid_t pid = fork();
    if (pid == 0) {
      OutboxWriter writer((*segment)->outbox(), 1 << 14);
      AppendForEver(writer);
    }
    std::string bytes;
    const Deadline limit = Deadline::AfterSeconds(60);
    while (bytes.empty() && !limit.Passed()) bytes += reader.Drain(1000);
    const Deadline moment = Deadline::AfterNs(static_cast<std::int64_t>(random.Below(5'000'000)));
    while (!moment.Passed()) bytes += reader.Drain(1000);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    for (std::string more = reader.Drain(1000); !more.empty(); more = reader.Drain(1000)) {
      bytes += more;
    }
    const long records = CheckRecords(bytes);
    ASSERT_GT(records, 0) << "round " << round;
  }
}

TEST(Segment, TheWorkerSeesWhatTheAgentMade) {
  const auto agent = Segment::Create(64, 4096);
  ASSERT_TRUE(agent.ok());
  const auto worker = Segment::Map(Fd(dup((*agent)->fd())));
  ASSERT_TRUE(worker.ok()) << worker.status().message();
  EXPECT_EQ((*worker)->journal_capacity(), 64u);
  EXPECT_EQ((*worker)->outbox_capacity(), 4096u);
  journal::JournalWriter::Create((*worker)->journal(), 64).EnterPhase(journal::Phase::kLoad);
  const auto last = journal::JournalReader((*agent)->journal(), 64).Last();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->phase, journal::Phase::kLoad);
  // Nobody can shrink it under the other's feet.
  EXPECT_NE(ftruncate((*worker)->fd(), 0), 0);
  (*worker)->journal()[0] = std::byte{};
}

TEST(Segment, RefusesForeignMemory) {
  EXPECT_FALSE(Segment::Map(Fd(open("/dev/null", O_RDWR))).ok());
  Fd fd(memfd_create("foreign", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), 1 << 16), 0);
  EXPECT_FALSE(Segment::Map(std::move(fd)).ok());
}

}  // namespace
}  // namespace lockstep::control
