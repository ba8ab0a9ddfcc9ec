// What NCCL's RAS subsystem says of a running job: NVIDIA's user guide, "RAS". JSON from
// NCCL 2.28.7 on; before that its verbose text, which names only ranks that differ from most. Both
// were compared with the sources of NCCL 2.24.3 to 2.30.7 (docs/hung-job.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace lockstep::ras {

struct Rank {
  int number = 0;     // in the communicator
  std::string place;  // "pid 483072 on 172.16.64.210"; "": not told
  bool operator==(const Rank&) const = default;
};

// Ranks that launched an operation equally often. Launched, not done: a collective counts as soon
// as it is enqueued.
struct CountGroup {
  std::string operation;  // "AllReduce"; "collective": NCCL 2.24 and 2.25 count all alike
  std::uint64_t count = 0;
  int ranks = 0;
  std::vector<Rank> named;  // all of them, or none: text leaves out where there are many
  bool operator==(const CountGroup&) const = default;
};

struct RankError {
  Rank rank;
  std::string what;  // "Remote process error"
};

struct Communicator {
  std::string name;                  // its hash, as NCCL's log has it: "0x27a079b828ff1a75"
  std::string second;                // JSON: tells communicators of one hash apart
  std::vector<CountGroup> counts;    // of operations whose counts differ, the lowest count first
  std::vector<Rank> missing;         // they do not answer RAS
  std::vector<RankError> errors;     // errors that ranks reported
  std::vector<Rank> initializing;    // JSON only
  std::vector<Rank> aborted;         // JSON only: without an error; so programs also end one
  std::vector<std::uint64_t> total;  // JSON only: every count of every rank
};

struct JobStatus {
  std::string version;      // of NCCL; "": not told
  bool counts_all = false;  // JSON: also counts that do not differ
  std::vector<Communicator> communicators = {};
};

// Either form. kInvalidInput, beginning with `origin`: neither.
Result<JobStatus> ParseStatus(std::string_view text, const std::string& origin);

inline constexpr const char* kDefaultPort = "28028";  // NCCL_RAS_ADDR

// `address`: "HOST:PORT", "[IPv6]:PORT" or "HOST". Asks for JSON, and for text where the service
// does not know JSON. kEnvironment: nobody answers there.
Result<std::string> Ask(const std::string& address);

}  // namespace lockstep::ras
