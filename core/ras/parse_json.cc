// Reads what is there of each rank, and groups ranks by their counts as the text form does. Members
// that a later NCCL adds are passed over; those that are missing or of another type count as 0.
// Where ranks are missing, NCCL 2.28.7 to 2.28.9 leave out a comma. Their answer is no JSON then.
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

// NCCL writes "unknown" and -1 of a process that its RAS does not know.
Rank RankOf(const Json& json) {
  Rank rank{static_cast<int>(Number(At(json, "rank"))), ""};
  const std::int64_t pid = Number(At(json, "pid"));
  if (pid > 0) rank.place = fmt::format("pid {} on {}", pid, Text(At(json, "host")));
  return rank;
}

// Also ranks that answered and are no members, yet or any more, are listed as missing.
bool IsSilent(const Json& missing) {
  const Json& status = At(missing, "status");
  return !status.is_object() || At(status, "unresponsive") == true ||
         At(status, "considered_dead") == true;
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
    case 8:
      return "Timeout";
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
  communicator.second = Text(At(json, "secondary_hash"));
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
  for (const Json& one : At(json, "missing_ranks")) {
    if (IsSilent(one)) communicator.missing.push_back(RankOf(one));
  }
  return communicator;
}

// With the comma between a number that ends a line and "status".
std::string WithCommas(std::string text) {
  constexpr std::string_view kStatus = "\"status\"";
  for (std::size_t at = 0; (at = text.find(kStatus, at)) != std::string::npos;) {
    const std::size_t before = text.find_last_not_of(" \r\n", at - 1);
    const bool number = before < at && text[before] >= '0' && text[before] <= '9';
    if (number) text.insert(before + 1, 1, ',');
    at += kStatus.size() + (number ? 1 : 0);
  }
  return text;
}

}  // namespace

std::optional<JobStatus> ParseJson(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) json = Json::parse(WithCommas(std::string(text)), nullptr, false);
  const Json& communicators = At(json, "communicators");
  if (!communicators.is_array()) return std::nullopt;
  JobStatus status;
  status.version = Text(At(json, "nccl_version"));
  status.counts_all = true;
  for (const Json& one : communicators) status.communicators.push_back(CommunicatorOf(one));
  return status;
}

}  // namespace lockstep::ras
