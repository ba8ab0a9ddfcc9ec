// The dumps of PyTorch's Flight Recorder that a run would have left. core/flight writes the bytes.
// Here every lifetime of the workers gets a directory; one that holds other dumps is refused.
#include "cli/export_flight.h"

#include <fmt/core.h>

#include <ctime>
#include <filesystem>
#include <span>
#include <system_error>

#include "core/flight/write.h"
#include "results/store/atomic_file.h"
#include "results/store/lifetimes.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// 0 when the text is no time.
std::int64_t UnixNsOf(const std::string& iso) {
  std::tm time = {};
  if (strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time) == nullptr) return 0;
  return static_cast<std::int64_t>(timegm(&time)) * 1'000'000'000;
}

Status MakeEmpty(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return EnvironmentError(fmt::format("{}: {}; name one that can be made with --output-folder",
                                        directory, error.message()));
  }
  if (fs::is_empty(directory, error) && !error) return OkStatus();
  return InvalidInput(
      fmt::format("{}: is not empty, and dumps of two runs must not mix; name a new one with "
                  "--output-folder",
                  directory));
}

}  // namespace

Status ExportFlightRecorder(const results::store::Run& run, const std::string& path,
                            const std::string& directory) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<results::store::Lifetime> lifetimes,
                            results::store::LifetimesOf(run, path));
  LOCKSTEP_RETURN_IF_ERROR(MakeEmpty(directory));
  const flight::FlightClock clock = {.ns_per_tick = run.ns_per_tick,
                                     .origin_ticks = run.origin_ticks,
                                     .origin_unix_ns = UnixNsOf(run.started_at)};
  for (const results::store::Lifetime& lifetime : lifetimes) {
    std::string place = directory;
    if (lifetimes.size() > 1) {
      place = (fs::path(directory) / fmt::format("lifetime_{}", lifetime.number)).string();
      LOCKSTEP_RETURN_IF_ERROR(MakeEmpty(place));
    }
    const auto dumps = flight::FlightDumpsOf(lifetime.evidence, clock,
                                             results::store::SettingOf(run).deadline_seconds);
    for (const auto& [rank, bytes] : dumps) {
      const fs::path file = fs::path(place) / fmt::format("nccl_trace_rank_{}", rank);
      LOCKSTEP_RETURN_IF_ERROR(results::store::WriteAtomically(
          file.string(), {std::as_bytes(std::span<const char>(bytes))}));
    }
  }
  return OkStatus();
}

}  // namespace lockstep::cli
