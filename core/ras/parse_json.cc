// Reads what is there of each rank, and groups ranks by their counts as the text form does. Members
// that a later NCCL adds are passed over; those that are missing or of another type count as 0.
#include "core/ras/parse_json.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep::ras {
namespace {

using Json = nlohmann::json;

const Json& At(const Json& json, const char* name) {
  static const Json nothing;
  const auto found = json.find(name);
  return json.is_object() && found != json.end() ? *found : nothing;
}

std::string Text(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }

std::int64_t Number(const Json& json) {
  return json.is_number_integer() ? json.get<std::int64_t>() : 0;
}

Rank RankOf(const Json& json) {
  return {static_cast<int>(Number(At(json, "rank"))),
          fmt::format("pid {} on {}", Number(At(json, "pid")), Text(At(json, "host")))};
}

// nccl.h: ncclResult_t.
std::string ErrorText(std::int64_t error) {
  switch (error) {
    case 1:
      return "Unhandled CUDA error";
    case 2:
      return "System error";
    case 3:
      return "Internal error";
    case 4:
      return "Invalid argument";
    case 5:
      return "Invalid usage";
    case 6:
      return "Remote process error";
    default:
      return fmt::format("error {}", error);
  }
}

constexpr std::int64_t kSuccess = 0;
constexpr std::int64_t kInProgress = 7;

void AddErrors(const Json& status, const Rank& rank, Communicator& communicator) {
  const std::int64_t init = Number(At(status, "init_state"));
  if (init == kInProgress) communicator.initializing.push_back(rank);
  for (const std::int64_t error : {init, Number(At(status, "async_error"))}) {
    if (error == kSuccess || error == kInProgress) continue;
    communicator.errors.push_back({rank, ErrorText(error)});
    return;
  }
  if (At(status, "abort_flag") == true) communicator.errors.push_back({rank, "aborted"});
}

using Counts = std::map<std::string, std::map<std::uint64_t, std::vector<Rank>>>;

void AddCounts(const Counts& counts, Communicator& communicator) {
  for (const auto& [operation, by_count] : counts) {
    if (by_count.size() < 2) continue;
    for (const auto& [count, ranks] : by_count) {
      communicator.counts.push_back({operation, count, static_cast<int>(ranks.size()), ranks});
    }
  }
}

Communicator CommunicatorOf(const Json& json) {
  Communicator communicator;
  communicator.name = Text(At(json, "hash"));
  Counts counts;
  for (const Json& one : At(json, "ranks")) {
    const Rank rank = RankOf(one);
    AddErrors(At(one, "status"), rank, communicator);
    for (const auto& [operation, value] : At(one, "collective_counts").items()) {
      const auto count = static_cast<std::uint64_t>(Number(value));
      counts[operation][count].push_back(rank);
      communicator.total.push_back(count);
    }
  }
  AddCounts(counts, communicator);
  for (const Json& one : At(json, "missing_ranks")) communicator.missing.push_back(RankOf(one));
  return communicator;
}

}  // namespace

std::optional<JobStatus> ParseJson(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json& communicators = At(json, "communicators");
  if (!communicators.is_array()) return std::nullopt;
  JobStatus status;
  status.version = Text(At(json, "nccl_version"));
  status.counts_all = true;
  for (const Json& one : communicators) status.communicators.push_back(CommunicatorOf(one));
  return status;
}

}  // namespace lockstep::ras
