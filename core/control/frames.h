// The frames between coordinator, agents and workers. A frame that carries more than raw bytes is a
// struct of its own, described once (core/control/codec.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/control/codec.h"
#include "core/control/facts.h"
#include "core/control/records.h"
#include "core/journal/gpu_sample.h"
#include "core/journal/journal.h"
#include "core/journal/worker_log.h"
#include "core/verdict/judge.h"
#include "core/verdict/lost_hosts.h"

namespace lockstep::control {

inline constexpr std::uint32_t kProtocolVersion = 11;

enum class FrameType : std::uint32_t {
  kNone = 0,
  // Joining, between a follower and the coordinator.
  kHello,
  kChallenge,
  kJoin,
  kWelcome,  // admitted
  kRefused,  // of another version, or no rank that is missing
  // Orders, from the coordinator to an agent.
  kStartWorker,
  kToWorker,      // a Message
  kMeetingValue,  // passed on to the worker
  kCollect,
  kJournal,
  kEnd,
  kSignal,    // sent to the worker
  kToPlugin,  // raw bytes
  kDismiss,
  kReadGpus,
  // Reports, from an agent to the coordinator.
  kStarted,
  kFromWorker,  // a Message
  kData,        // raw bytes of the outbox
  kExited,
  kSignalled,
  kStopped,
  kContinued,
  kQuiet,
  kFromPlugin,  // raw bytes
  kOverdue,
  kMeetingPut,  // from the worker
  kMeetingGet,  // from the worker
  kEvidence,
  kJournalRead,
  kEnded,
  kDismissed,
  kGpusRead,
  kLog,
  // Between an agent and the process that owns the launcher's MPI identity.
  kGather,
  kGathered,
  kProceed,  // go on as a worker
  // Faults from outside (core/agent/agent_faults.h).
  kFault,      // to an agent
  kFaultDone,  // from it
  // Of the coordinator's life, and what follows its end (core/coordinator/failover.h).
  kRoster,        // to an agent, first of all
  kHeartbeat,     // to an agent, and its answer
  kReplicated,    // to an agent: raw bytes, to keep for FailoverReport::replicated
  kRest,          // to an agent: nothing comes for a while, not even heartbeats (RestOrder)
  kLauncherGone,  // from an agent: the launcher's daemon on its host ended
  kToldToEnd,     // from an agent: a signal told it to end, which it will do in a moment
  kTakenForLost,  // to whom nothing was heard of, before it is left: an agent, or the coordinator
  kFailoverPart,  // from an agent to the successor
  kFailoverEnd,   // from it: the part and its kData are complete
  // Clocks (core/coordinator/host_clocks.h).
  kClockProbe,  // to an agent
  kClockTold,   // from it
};
constexpr std::uint32_t Number(FrameType type) { return static_cast<std::uint32_t>(type); }

// Largest payload: a Message of kMaxPayloadBytes and what stands around it.
inline constexpr std::size_t kMostFrameBytes = kMaxPayloadBytes + (64 << 10);
// Before a peer is admitted.
inline constexpr std::size_t kMostHelloBytes = 64 << 10;
// Newest events in one piece of evidence, beside few older ones (journal::Shorten): 64 KiB a rank.
inline constexpr std::size_t kEvidenceEvents = 1024;

// Of random bytes, which a proof covers (core/control/rendezvous/proof.h).
inline constexpr std::size_t kNonceBytes = 16;

// The follower's first word.
struct HelloFrame {
  static constexpr FrameType kType = FrameType::kHello;
  std::uint32_t version = kProtocolVersion;
  std::string nonce;
  static void Describe(auto& fields, auto& frame) {
    fields(frame.version, frame.nonce);
    fields.Require(frame.nonce.size() == kNonceBytes);
  }
};
// The coordinator's answer: it knows the secret; does the follower?
struct ChallengeFrame {
  static constexpr FrameType kType = FrameType::kChallenge;
  std::string nonce;
  std::string proof;
  static void Describe(auto& fields, auto& frame) {
    fields(frame.nonce, frame.proof);
    fields.Require(frame.nonce.size() == kNonceBytes);
  }
};
struct JoinFrame {
  static constexpr FrameType kType = FrameType::kJoin;
  std::string proof;
  std::string request;  // JoinWords
  static void Describe(auto& fields, auto& frame) {
    fields(frame.proof);
    fields.Rest(frame.request);
  }
};
struct JoinWords {
  AgentInfo info;
  std::string address;  // as in Contact
  std::uint16_t port = 0;
  static void Describe(auto& fields, auto& frame) { fields(frame.info, frame.address, frame.port); }
};

// Says only which question it belongs to.
template <FrameType kOf>
struct NumberedFrame {
  static constexpr FrameType kType = kOf;
  std::uint64_t request = 0;
  static void Describe(auto& fields, auto& frame) { fields(frame.request); }
};
using EndOrder = NumberedFrame<FrameType::kEnd>;
using EndedReport = NumberedFrame<FrameType::kEnded>;

// Asks for the newest events, or samples of each GPU.
template <FrameType kOf>
struct NewestFrame {
  static constexpr FrameType kType = kOf;
  std::uint64_t request = 0;
  std::uint64_t most = 0;
  static void Describe(auto& fields, auto& frame) { fields(frame.request, frame.most); }
};
using JournalOrder = NewestFrame<FrameType::kJournal>;
using GpusOrder = NewestFrame<FrameType::kReadGpus>;

// A signal, or an exit code.
template <FrameType kOf>
struct ValueFrame {
  static constexpr FrameType kType = kOf;
  std::int32_t value = 0;
  static void Describe(auto& fields, auto& frame) { fields(frame.value); }
};
using SignalOrder = ValueFrame<FrameType::kSignal>;
using DismissOrder = ValueFrame<FrameType::kDismiss>;  // the exit code of the launch
using ExitedReport = ValueFrame<FrameType::kExited>;
using SignalledReport = ValueFrame<FrameType::kSignalled>;
using StoppedReport = ValueFrame<FrameType::kStopped>;

struct StartOrder {
  static constexpr FrameType kType = FrameType::kStartWorker;
  std::int32_t lifetime = 0;
  WorkerSetup setup;
  static void Describe(auto& fields, auto& frame) { fields(frame.lifetime, frame.setup); }
};
struct StartedReport {
  static constexpr FrameType kType = FrameType::kStarted;
  Status status;
  static void Describe(auto& fields, auto& frame) { fields(frame.status); }
};
struct RestOrder {
  static constexpr FrameType kType = FrameType::kRest;
  double seconds = 0;  // that it lasts at most
  static void Describe(auto& fields, auto& frame) { fields(frame.seconds); }
};
struct CollectOrder {
  static constexpr FrameType kType = FrameType::kCollect;
  std::uint64_t request = 0;
  std::int64_t budget_ns = 0;  // that it may take
  bool system = false;         // ask the system, too
  static void Describe(auto& fields, auto& frame) {
    fields(frame.request, frame.budget_ns, frame.system);
  }
};
struct EvidenceReport {
  static constexpr FrameType kType = FrameType::kEvidence;
  std::uint64_t request = 0;
  verdict::RankEvidence evidence;
  static void Describe(auto& fields, auto& frame) { fields(frame.request, frame.evidence); }
};
struct JournalReport {
  static constexpr FrameType kType = FrameType::kJournalRead;
  std::uint64_t request = 0;
  journal::Journal journal;
  static void Describe(auto& fields, auto& frame) { fields(frame.request, frame.journal); }
};
struct GpusReport {
  static constexpr FrameType kType = FrameType::kGpusRead;
  std::uint64_t request = 0;
  double age_seconds = 0;  // of the newest sample
  journal::GpuSamples samples;
  static void Describe(auto& fields, auto& frame) {
    fields(frame.request, frame.age_seconds, frame.samples);
  }
};
struct LogReport {
  static constexpr FrameType kType = FrameType::kLog;
  journal::WorkerLog log;
  static void Describe(auto& fields, auto& frame) { fields(frame.log); }
};
struct FaultOrder {
  static constexpr FrameType kType = FrameType::kFault;
  std::uint32_t fault = 0;
  AgentFault order;
  static void Describe(auto& fields, auto& frame) { fields(frame.fault, frame.order); }
};
struct FaultReport {
  static constexpr FrameType kType = FrameType::kFaultDone;
  std::uint32_t fault = 0;
  FaultNews news = FaultNews::kApplied;
  std::string text;
  static void Describe(auto& fields, auto& frame) {
    fields(frame.fault);
    fields.UpTo(frame.news, FaultNews::kHealed);
    fields(frame.text);
  }
};
struct ClockProbe {
  static constexpr FrameType kType = FrameType::kClockProbe;
  std::uint64_t request = 0;
  bool read = false;  // its clocks, too
  static void Describe(auto& fields, auto& frame) { fields(frame.request, frame.read); }
};
struct ClockReport {
  static constexpr FrameType kType = FrameType::kClockTold;
  std::uint64_t request = 0;
  Ticks there = 0;  // its ticks when the probe came
  std::optional<ClockReading> reading;
  static void Describe(auto& fields, auto& frame) {
    fields(frame.request, frame.there, frame.reading);
  }
};

// The workers' Meeting.
struct MeetingPut {
  static constexpr FrameType kType = FrameType::kMeetingPut;
  std::string key;
  std::string value;
  static void Describe(auto& fields, auto& frame) { fields(frame.key, frame.value); }
};
struct MeetingGet {
  static constexpr FrameType kType = FrameType::kMeetingGet;
  std::uint64_t request = 0;
  std::string key;
  static void Describe(auto& fields, auto& frame) { fields(frame.request, frame.key); }
};
struct MeetingValue {
  static constexpr FrameType kType = FrameType::kMeetingValue;
  std::uint64_t request = 0;
  std::string value;
  static void Describe(auto& fields, auto& frame) { fields(frame.request, frame.value); }
};

// The exchange of addresses over MPI.
struct GatherOrder {
  static constexpr FrameType kType = FrameType::kGather;
  bool on_threads = false;  // it will call MPI on threads
  std::string part;         // of this rank
  static void Describe(auto& fields, auto& frame) { fields(frame.on_threads, frame.part); }
};
struct GatheredReport {
  static constexpr FrameType kType = FrameType::kGathered;
  Status status;
  std::vector<std::string> parts;  // one a rank
  static void Describe(auto& fields, auto& frame) { fields(frame.status, frame.parts); }
};

// What an agent gives to the successor before its outboxes.
struct FailoverFrame {
  static constexpr FrameType kType = FrameType::kFailoverPart;
  std::int32_t lifetime = -1;
  verdict::Loss loss = verdict::Loss::kNone;  // of the coordinator
  verdict::RankEvidence evidence;
  journal::Journal journal;
  bool data_cut = false;  // not all of the outboxes was kept
  static void Describe(auto& fields, auto& frame) {
    fields(frame.lifetime);
    fields.UpTo(frame.loss, verdict::Loss::kGone);
    fields(frame.evidence, frame.journal, frame.data_cut);
  }
};

}  // namespace lockstep::control
