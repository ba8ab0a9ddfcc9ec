// A dump of PyTorch's Flight Recorder: what one rank asked its communication libraries to do.
// Source of the format: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp
// (versions 2.1 to 2.10; 2.4 is that of PyTorch 2.6, 2.10 that of PyTorch 2.10).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/flight/document.h"

namespace lockstep::flight {

// Clocks of hosts differ by less.
inline constexpr std::int64_t kClocksNs = std::int64_t{60} * 1'000'000'000;

// Texts that many calls share, numbered.
class FlightTexts {
 public:
  std::int32_t IdOf(std::string_view text);
  std::string_view TextOf(std::int32_t id) const { return texts_[static_cast<std::size_t>(id)]; }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, std::int32_t> ids_;
};

// Names that mean the same to a library are one kind.
enum class FlightKind : std::uint8_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
  kSend,
  kRecv,
  kCoalesced,  // several calls as one operation
  kOther,      // known by its name only
};

// A send or a receive as a part of a batch.
struct FlightMessage {
  FlightKind kind = FlightKind::kOther;
  std::int32_t peer = -1;  // rank in the group
};

// One call; calls that were coalesced are one.
struct FlightCall {
  std::int32_t group = 0;      // of FlightDump::groups
  std::uint64_t sequence = 0;  // collective_seq_id, or p2p_seq_id of a point_to_point
  FlightKind kind = FlightKind::kOther;
  bool point_to_point = false;
  // Its end was seen. NCCL: by its state; other libraries: PyTorch took it from its list (retired),
  // which it also does with one that failed.
  bool done = false;
  bool started = false;    // the library's kernel was seen to run
  bool timed_out = false;  // NCCL: given up by the watchdog
  std::int32_t peer = -1;  // rank in the group, of send and recv
  std::int64_t input_elements = 0;
  std::int64_t output_elements = 0;
  std::int64_t created_ns = 0;  // wall clock of its host
  std::int64_t ended_ns = 0;    // likewise, when its end was seen; 0: not said
  std::int64_t timeout_ms = 0;  // 0: not said
  std::uint64_t parts = 0;      // of kCoalesced: a hash of what all ranks must have the same
  bool cut = false;             // the ring may have lost parts of it, or they are not over
  std::vector<FlightMessage> messages = {};  // of kCoalesced
  // Texts.
  std::int32_t name = 0;       // "all_reduce"
  std::int32_t type = 0;       // "Float"; "" without elements
  std::int32_t arguments = 0;  // "Float[256]", "Float[3] -> Float[4, 3]"
  std::int32_t place = 0;      // "train.py:57 in step", the innermost frame outside PyTorch; or ""
};

struct FlightGroup {
  std::string name;              // "0"
  std::string description = {};  // "default_pg"; may be empty
  // World ranks by rank in the group; empty: the dump does not say (gloo's do not).
  std::vector<int> ranks = {};
  int lives = 1;  // calls of those before the last are left out: it was destroyed and made anew
};

struct FlightDump {
  int rank = 0;
  std::string file;
  std::string version;  // "2.4"
  int minor = 0;        // 4
  std::string backend;  // "nccl"; that of the first call, "" without calls
  std::vector<FlightGroup> groups;
  std::vector<int> nameless_ranks;  // that it names without saying of which group
  std::vector<FlightCall> calls;    // in the order of the program
  std::uint64_t missed = 0;         // calls that the ring had lost
  bool tells_starts = false;        // it was asked to record when operations start
  std::int64_t newest_ns = 0;       // of all times in it; 0: none
  std::int64_t written_at_ns = 0;   // by the file's time
};

// What all ranks must have the same number of; -1: that differs by nature.
std::int64_t ComparedElements(const FlightCall& call);

// Whether these first bytes are those of a pickle, or of a dictionary in JSON.
bool LooksLikeFlightDump(std::string_view beginning);

// The form (pickle or JSON) is told by the first byte. `file` begins every error (kInvalidInput).
Result<FlightDump> ReadFlightDump(std::string bytes, int rank, const std::string& file,
                                  FlightTexts& texts);

}  // namespace lockstep::flight
