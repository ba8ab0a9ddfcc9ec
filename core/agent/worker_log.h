// The end of what a worker's library wrote into a file, kept with the run.
#pragma once

#include <cstddef>
#include <string>

#include "core/journal/worker_log.h"

namespace lockstep::agent {

inline constexpr std::size_t kMostLogBytes = 16 << 10;

// The last `most` bytes of a regular file, from the beginning of a line on; empty text when there
// is no such file, or nothing in it. Never waits for a writer.
journal::WorkerLog ReadLogEnd(const std::string& path, std::size_t most = kMostLogBytes);

}  // namespace lockstep::agent
