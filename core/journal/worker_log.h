// What is kept of a log that a worker's library wrote.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::journal {

struct WorkerLog {
  int rank = 0;
  int lifetime = 0;
  std::string path;            // on the rank's host; empty: one without a name
  std::int64_t bytes = 0;      // of the file
  std::int64_t cut_bytes = 0;  // of it that are before `text`
  std::string text;            // its end, in whole lines
};

// Holds the path of the log that an agent keeps for its worker's library.
inline constexpr char kWorkerLogVariable[] = "LOCKSTEP_WORKER_LOG";

// Not what NCCL writes without any trouble.
inline bool IsNews(std::string_view line) {
  return !line.empty() && line.find("NCCL version") == std::string_view::npos;
}

}  // namespace lockstep::journal
