// Either form. The text form has sections that begin with "#0-0 (HASH) MISMATCH". Below it stand
// groups of ranks, each followed by those of its ranks that are few. Lines that say nothing of
// these are passed over. The JSON form holds all that RAS gathered. Its ranks are grouped by their
// counts as in the text; members that a later NCCL adds are passed over, and those that are missing
// or of another type count as 0. Where ranks are missing, NCCL 2.28.7 to 2.28.9 leave out a comma.
#include "core/ras/status.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

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
  static constexpr const char* kTexts[] = {
      "Unhandled CUDA error", "System error",         "Internal error", "Invalid argument",
      "Invalid usage",        "Remote process error", nullptr,          "Timeout"};
  const bool known = 1 <= error && error <= std::ssize(kTexts) && kTexts[error - 1] != nullptr;
  return known ? kTexts[error - 1] : fmt::format("error {}", error);
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
  if (At(status, "abort_flag") == true) communicator.aborted.push_back(rank);
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

// Nothing: not that form, or cut off.
std::optional<JobStatus> ParseJson(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) json = Json::parse(WithCommas(std::string(text)), nullptr, false);
  const Json& communicators = At(json, "communicators");
  if (!communicators.is_array()) return std::nullopt;
  JobStatus status{.version = Text(At(json, "nccl_version")), .counts_all = true};
  for (const Json& one : communicators) status.communicators.push_back(CommunicatorOf(one));
  return status;
}

constexpr std::size_t kMostWord = 63;

// "Rank 5 … managed by process 483077 on node 172.16.64.210"
Rank RankIn(const std::string& line) {
  Rank rank;
  std::sscanf(line.c_str(), "Rank %d", &rank.number);
  constexpr std::string_view kProcess = "managed by process ";
  const std::size_t at = line.find(kProcess);
  int pid = 0;
  char host[kMostWord + 1] = "";
  if (at != line.npos &&
      std::sscanf(line.c_str() + at + kProcess.size(), "%d on node %63s", &pid, host) == 2) {
    rank.place = fmt::format("pid {} on {}", pid, host);
  }
  return rank;
}

class TextReader {
 public:
  explicit TextReader(JobStatus& status) : status_(status) {}

  void Take(const std::string& line) {
    char word[kMostWord + 1] = "";
    if (std::sscanf(line.c_str(), "NCCL version %63s", word) == 1) {
      status_.version = word;
    } else if (line.starts_with('#')) {
      Begin(line);
    } else if (section_ != Section::kNone) {
      Detail(line);
    }
  }
  // NCCL 2.26 to 2.28 misread their own table behind a communicator that lacks ranks: what they say
  // of another one may be of none. JSON was never so.
  void DropWhatIsGarbled() {
    int major = 0, minor = 0;
    if (std::sscanf(status_.version.c_str(), "%d.%d", &major, &minor) != 2) return;
    const auto lacks = [](const Communicator& one) { return !one.missing.empty(); };
    if (major != 2 || minor < 26 || minor > 28) return;
    if (!strays_ && std::ranges::none_of(status_.communicators, lacks)) return;
    for (Communicator& communicator : status_.communicators) {
      if (lacks(communicator)) continue;
      communicator.counts.clear();
      communicator.errors.clear();
    }
  }

 private:
  enum class Section { kNone, kIncomplete, kError, kMismatch, kOther };

  // "#0-0 (cf264af53edbe986) INCOMPLETE"
  void Begin(const std::string& line) {
    char number[kMostWord + 1] = "", hash[kMostWord + 1] = "", kind[kMostWord + 1] = "";
    section_ = Section::kNone;
    if (std::sscanf(line.c_str(), "#%63[0-9-] (%63[0-9a-f]) %63s", number, hash, kind) != 3) return;
    section_ = std::strcmp(kind, "INCOMPLETE") == 0 ? Section::kIncomplete
               : std::strcmp(kind, "ERROR") == 0    ? Section::kError
               : std::strcmp(kind, "MISMATCH") == 0 ? Section::kMismatch
                                                    : Section::kOther;
    operation_.clear();
    what_.clear();
    const auto known = std::ranges::find(numbers_, number);
    at_ = static_cast<std::size_t>(known - numbers_.begin());
    if (known != numbers_.end()) return;
    numbers_.emplace_back(number);
    const std::string_view digits = hash;
    const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size() - 1);
    status_.communicators.emplace_back().name = fmt::format("0x{}", digits.substr(zeros));
  }

  void Detail(const std::string& line) {
    switch (section_) {
      case Section::kIncomplete:
        return Incomplete(line);
      case Section::kError:
        return Error(line);
      case Section::kMismatch:
        return Mismatch(line);
      case Section::kNone:
      case Section::kOther:
        return;
    }
  }

  void Incomplete(const std::string& line) {
    std::vector<Rank>& missing = status_.communicators[at_].missing;
    if (line.starts_with("Rank ")) return missing.push_back(RankIn(line));
    if (!line.starts_with("The missing rank")) return;  // NCCL 2.24: "The missing ranks: 3,21"
    std::istringstream numbers(line.substr(std::min(line.size(), line.find(':') + 1)));
    for (std::string number; std::getline(numbers, number, ',');) {
      Rank rank;
      if (std::sscanf(number.c_str(), "%d", &rank.number) == 1) missing.push_back(rank);
    }
  }

  // "2 ranks reported System error", "Rank 3 reported System error -- GPU …"
  void Error(const std::string& line) {
    constexpr std::string_view kReported = " reported ";
    const std::size_t at = line.find(kReported);
    if (at != line.npos) {
      const std::size_t begin = at + kReported.size();
      what_ = line.substr(begin, line.find(" --", begin) - begin);
    }
    if (line.starts_with("Rank ") && !what_.empty()) {
      status_.communicators[at_].errors.push_back({RankIn(line), what_});
    }
  }

  void Mismatch(const std::string& line) {
    char word[kMostWord + 1] = "";
    if (std::sscanf(line.c_str(), "Communicator ranks have different %63s", word) == 1) {
      operation_ = line.find("operation counts") == line.npos ? "" : word;
      return;
    }
    if (operation_.empty()) {  // of their states, which come and go
      strays_ = strays_ || line.ends_with(" NOCOMM") || line.find(" NOCOMM -- ") != line.npos;
      return;
    }
    std::vector<CountGroup>& counts = status_.communicators[at_].counts;
    unsigned long count = 0;
    int ranks = 0;
    const char* const text = line.c_str();
    if (std::sscanf(text, "%d ranks have launched up to operation %lu", &ranks, &count) == 2 ||
        (std::sscanf(text, "%d ranks have not", &ranks) == 1 && line.ends_with("any operations"))) {
      counts.push_back({operation_, count, ranks, {}});
    } else if (std::sscanf(text, "Rank %*d has launched up to operation %lu", &count) == 1 ||
               line.find(" has not launched any operations") != line.npos) {
      counts.push_back({operation_, count, 1, {RankIn(line)}});
    } else if (line.starts_with("Rank ") && !counts.empty()) {
      counts.back().named.push_back(RankIn(line));
    }
  }

  JobStatus& status_;
  std::vector<std::string> numbers_;  // "0-0": of a communicator in this answer
  Section section_ = Section::kNone;
  bool strays_ = false;    // a communicator lacks ranks that answered
  std::size_t at_ = 0;     // of the communicator
  std::string operation_;  // whose counts differ
  std::string what_;       // was reported
};

}  // namespace

Result<JobStatus> ParseStatus(std::string_view text, const std::string& origin) {
  if (std::optional<JobStatus> status = ParseJson(text)) return *std::move(status);
  JobStatus status;
  TextReader reader(status);
  std::istringstream lines{std::string(text)};
  bool known = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t");
    const std::size_t end = line.find_last_not_of(" \t\r");
    if (begin == line.npos) continue;
    line = line.substr(begin, end + 1 - begin);
    known = known || line.starts_with("NCCL version") || line.starts_with("Communicators...");
    reader.Take(line);
  }
  if (!known) {
    return InvalidInput(
        "{}: no status of NCCL's RAS; name HOST:PORT, or a file with what `ncclras -v` printed",
        origin);
  }
  reader.DropWhatIsGarbled();
  for (Communicator& communicator : status.communicators) {
    std::ranges::stable_sort(communicator.counts, [](const CountGroup& a, const CountGroup& b) {
      return std::tie(a.operation, a.count) < std::tie(b.operation, b.count);
    });
  }
  return status;
}

}  // namespace lockstep::ras
