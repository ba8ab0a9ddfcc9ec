// What the frames between coordinator, agents and workers mean. A payload is given as a list of
// fields in the notation of core/control/codec.h.
#ifndef LOCKSTEP_CORE_CONTROL_PROTOCOL_H_
#define LOCKSTEP_CORE_CONTROL_PROTOCOL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/control/agent_info.h"
#include "core/control/codec.h"
#include "core/control/message.h"
#include "core/journal/gpu_sample.h"
#include "core/journal/worker_log.h"
#include "core/verdict/judge.h"

namespace lockstep::control {

inline constexpr std::uint32_t kProtocolVersion = 6;

enum class FrameType : std::uint32_t {
  kNone = 0,
  // Joining, between a follower and the coordinator.
  kHello,    // u32 version, secret, AgentInfo, Contact: text address, u16 port
  kWelcome,  // empty: admitted
  kRefused,  // empty: knows the secret, but is no rank that is missing
  // Orders, from the coordinator to an agent.
  kStartWorker,   // i32 lifetime, WorkerSetup
  kToWorker,      // a Message
  kMeetingValue,  // u64 request, text value: passed on to the worker
  kCollect,       // u64 request, i64 nanoseconds it may take, u8 whether to ask the system too
  kJournal,       // u64 request, u64 most events
  kEnd,           // u64 request
  kSignal,        // i32 signal: sent to the worker
  kToPlugin,      // raw bytes
  kDismiss,       // empty
  kReadGpus,      // u64 request, u64 most samples of each GPU
  // Reports, from an agent to the coordinator.
  kStarted,      // u32 StatusCode, text message
  kFromWorker,   // a Message
  kData,         // raw bytes of the outbox
  kExited,       // i32 exit code
  kSignalled,    // i32 signal
  kStopped,      // i32 signal
  kContinued,    // empty
  kQuiet,        // empty
  kFromPlugin,   // raw bytes
  kOverdue,      // empty
  kMeetingPut,   // text key, text value; from the worker
  kMeetingGet,   // u64 request, text key; from the worker
  kEvidence,     // u64 request, RankEvidence
  kJournalRead,  // u64 request, Journal
  kEnded,        // u64 request
  kDismissed,    // empty
  kGpusRead,     // u64 request, f64 age in seconds, GpuSamples
  kLog,          // WorkerLog
  // Between an agent and the process that owns the launcher's MPI identity.
  kGather,    // u8 whether it will call MPI on threads, raw bytes: this rank's part
  kGathered,  // u32 StatusCode, text message, then one text for each rank
  kProceed,   // empty: go on as a worker
  // Faults from outside (core/agent/agent_faults.h).
  kFault,      // to an agent: u32 fault, AgentFault
  kFaultDone,  // from it: u32 fault, u8 FaultNews, text
  // Of the coordinator's life, and what follows its end (core/coordinator/failover.h).
  kRoster,        // to an agent, first of all: EncodeRoster
  kHeartbeat,     // to an agent, and its answer: empty
  kReplicated,    // to an agent: raw bytes, to keep for FailoverReport::replicated
  kRest,          // to an agent: no more heartbeats will come, nor any order but kDismiss
  kLauncherGone,  // from an agent: the launcher's daemon on its host ended
  kToldToEnd,     // from an agent: a signal told it to end, which it will do in a moment
  kTakenForLost,  // from an agent to a coordinator that it leaves
  kFailoverPart,  // from an agent to the successor: i32 lifetime, RankEvidence, Journal
  kFailoverEnd,   // from it: the part and its kData are complete
  // Clocks (core/coordinator/host_clocks.h).
  kClockProbe,  // to an agent: u64 request, u8 whether its clocks are to be read too
  kClockTold,   // from it: u64 request, u64 its ticks when the probe came, ClockReading if asked
};

// Largest payload: a Message of kMaxPayloadBytes and what stands around it.
inline constexpr std::size_t kMostFrameBytes = kMaxPayloadBytes + (64 << 10);
// Before a peer is admitted.
inline constexpr std::size_t kMostHelloBytes = 64 << 10;
// Events in one piece of evidence: 64 KiB a rank.
inline constexpr std::size_t kEvidenceEvents = 1024;

std::string EncodeMessage(const Message& message);
Message DecodeMessage(std::string_view bytes);

void Put(Encoder& encoder, const journal::Journal& journal);
void Put(Encoder& encoder, const verdict::RankEvidence& evidence);
void Put(Encoder& encoder, const journal::GpuSamples& samples);
void Put(Encoder& encoder, const journal::WorkerLog& log);
void Put(Encoder& encoder, const AgentInfo& info);
void Put(Encoder& encoder, const Status& status);
// False (the decoder is not ok) when the bytes are no such thing.
bool Get(Decoder& decoder, journal::Journal& journal);
bool Get(Decoder& decoder, verdict::RankEvidence& evidence);
bool Get(Decoder& decoder, journal::GpuSamples& samples);
bool Get(Decoder& decoder, journal::WorkerLog& log);
bool Get(Decoder& decoder, AgentInfo& info);
bool Get(Decoder& decoder, Status& status);

}  // namespace lockstep::control

#endif  // LOCKSTEP_CORE_CONTROL_PROTOCOL_H_
