// Dumps of a few calls each, written down in a test, and how they are judged.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "core/flight/diagnosis.h"
#include "core/verdict/testing/history.h"

namespace lockstep::flight {

struct Call {
  const char* name = "all_reduce";
  int sequence = 1;
  const char* input = "[[4]]";
  const char* output = "[[4]]";
  const char* type = "Float";
  const char* state = "completed";
  bool peer = false;
  const char* group = R"(["0", "default_pg"])";
  int second = 0;        // when it was called
  bool retired = false;  // taken from PyTorch's list, though its state does not say that it ended
  int timeout_s = 0;     // 0: not said
  const char* output_type() const { return std::string(output) == "[[0]]" ? "Undefined" : type; }
};

inline Call Part(int sequence, const char* input, const char* output,
                 const char* name = "all_reduce") {
  return {name, sequence, input, output, "Float", "scheduled"};
}
inline Call End(int sequence) { return {"coalesced", sequence, "[]", "[]"}; }
inline Call Send(int sequence) {
  return {"send 0->1", sequence, "[[4]]", "[[4]]", "Float", "scheduled", true};
}

struct Rank {
  std::vector<Call> calls;
  int lost = 0;  // calls that its ring lost
  const char* world = "[0, 1]";
  // Further process groups: ", "1": {"name": "1", "desc": "dp", "ranks": "[1, 2]"}".
  const char* groups = "";
  int written_s = 100;  // its file
};

inline constexpr std::int64_t kFirstNs = 1'000'000'000'000;

inline std::string DumpOf(const Rank& rank, const std::string& version,
                          const std::string& backend) {
  std::string entries;
  std::int64_t record = rank.lost;
  for (const Call& call : rank.calls) {
    const std::int64_t created_ns =
        kFirstNs + call.second * std::int64_t{1'000'000'000} + record * 1'000'000;
    const bool is_done = std::string(call.state) == "completed";
    entries += fmt::format(
        R"({}{{"record_id": {}, "process_group": {}, "collective_seq_id": {}, "p2p_seq_id": {},
            "profiling_name": "{}:{}", "input_sizes": {}, "input_dtypes": ["{}"],
            "output_sizes": {}, "output_dtypes": ["{}"], "state": "{}", "retired": {},
            "time_created_ns": {}, "time_discovered_completed_ns": {}, "timeout_ms": {}{}}})",
        entries.empty() ? "" : ",", record++, call.group, call.peer ? 0 : call.sequence,
        call.peer ? call.sequence : 0, backend, call.name, call.input, call.type, call.output,
        call.output_type(), call.state, is_done || call.retired, created_ns,
        is_done ? created_ns + 1 : 0, call.timeout_s * 1000,
        version < "2.3" ? "" : fmt::format(R"(, "is_p2p": {})", call.peer));
  }
  return fmt::format(R"({{"version": "{}", "pg_config": {{"0": {{"name": "0",
      "desc": "default_pg", "ranks": "{}"}}{}}}, "entries": [{}]}})",
                     version, rank.world, rank.groups, entries);
}

inline FlightDiagnosis DiagnosisOf(const std::vector<Rank>& ranks,
                                   const std::string& version = "2.9",
                                   const std::string& backend = "nccl") {
  FlightTexts texts;
  std::vector<FlightDump> dumps;
  for (const Rank& rank : ranks) {
    const int number = static_cast<int>(dumps.size());
    dumps.push_back(ReadFlightDump(DumpOf(rank, version, backend), number, "dump", texts).value());
    dumps.back().written_at_ns = kFirstNs + rank.written_s * std::int64_t{1'000'000'000};
  }
  const FlightJob job = FlightJobOf(std::move(texts), std::move(dumps)).value();
  FlightDiagnosis diagnosis = DiagnoseFlight(job).value();
  verdict::ExpectReadable(diagnosis.judgement);
  return diagnosis;
}

inline verdict::Judgement JudgementOf(const std::vector<Rank>& ranks,
                                      const std::string& version = "2.9",
                                      const std::string& backend = "nccl") {
  return DiagnosisOf(ranks, version, backend).judgement;
}

}  // namespace lockstep::flight
