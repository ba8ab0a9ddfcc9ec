// PyTorch makes a pipe a rank for NCCL (ProcessGroupNCCL's DumpPipe), and looks into it once a
// second. It fails where the pipe cannot be made, so paths lie in /tmp: a launcher may pass the
// variables to hosts that have no folder of ours. A dump that is being written cannot be read:
// reading is tried again until all are whole.
#include "watch/run/flight.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string_view>
#include <system_error>

#include "core/base/clock.h"
#include "core/base/file_text.h"
#include "core/flight/files.h"
#include "core/flight/job.h"
#include "watch/run/folder.h"

namespace lockstep::watch::run {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAnswerNs = 30'000'000'000;  // PyTorch looks once a second
constexpr std::int64_t kBetweenTriesNs = 200'000'000;
constexpr std::string_view kPipeEnding = ".pipe";
constexpr const char* kFlightLock = "lock";
constexpr std::int64_t kLongestStartNs = 24 * 3'600'000'000'000;  // no job starts for so long
// The newer names first: they count where both are set.
constexpr const char* kBuffer = "TORCH_FR_BUFFER_SIZE";
constexpr const char* kDump[] = {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"};
constexpr const char* kPipe = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";

std::string Set(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

constexpr std::string_view kPrefix = "/tmp/lockstep-flight-";

// Nobody else can guess it: /tmp is everybody's.
std::string OwnPrefix() {
  std::random_device random;
  return fmt::format("{}{}-{:08x}{:08x}_", kPrefix, getpid(), random(), random());
}

// The path of a rank -> the rank; -1: it is no rank's.
int RankOf(const std::string& path, const std::string& prefix, std::string_view ending) {
  if (!path.starts_with(prefix) || !path.ends_with(ending)) return -1;
  const char* const begin = path.data() + prefix.size();
  const char* const end = path.data() + path.size() - ending.size();
  int rank = -1;
  const auto [at, error] = std::from_chars(begin, end, rank);
  return error == std::errc() && at == end && begin < end ? rank : -1;
}

template <typename Use>
void ForEachBeside(const std::string& prefix, Use use) {
  std::error_code error;
  fs::directory_iterator entries(fs::path(prefix).parent_path(), error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    use(entries->path().string());
  }
}

std::int64_t WrittenNs(const std::string& path) {
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0) return -1;
  return facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

// A rank reads this pipe.
bool IsRead(const std::string& path, const struct stat& facts) {
  return S_ISFIFO(facts.st_mode) &&
         Fd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)).valid();
}

// A watcher that was killed leaves what its ranks made. It stays while one of them is alive. Its
// lock tells that it is gone: the number of its process says nothing in another container. Ranks
// may make pipes where the lock is gone, or never was: the watcher was of another host.
void SweepLeft() {
  std::multimap<std::string, std::string> left;  // by what a watcher's paths have in common
  std::set<std::string> used;
  ForEachBeside(std::string(kPrefix), [&](const std::string& path) {
    struct stat facts;
    if (!path.starts_with(kPrefix) || lstat(path.c_str(), &facts) != 0) return;
    if (facts.st_uid != geteuid() || path.find('_') == std::string::npos) return;
    const std::string watcher = path.substr(0, path.find('_') + 1);
    const bool is_new = ClockNs(CLOCK_REALTIME) - WrittenNs(path) < kLongestStartNs;
    if (IsRead(path, facts) || (is_new && !fs::exists(watcher + kFlightLock))) used.insert(watcher);
    left.emplace(watcher, path);
  });
  std::error_code error;
  for (auto at = left.begin(); at != left.end();) {
    const auto [begin, end] = left.equal_range(at->first);
    const std::string lock_path = at->first + kFlightLock;
    const Fd lock = TakeLock(lock_path);
    const bool unused = !used.contains(at->first) && (lock.valid() || !fs::exists(lock_path));
    for (at = begin; at != end; ++at) {
      if (unused) fs::remove(at->second, error);
    }
  }
}

}  // namespace

Flight::Flight()
    : own_(OwnPrefix()), held_(HoldLock(own_ + kFlightLock)), asked_ns_(MonotonicNs()) {
  const auto set = [&](const char* name, const std::string& value) {
    if (Set(name).empty()) variables_.emplace_back(name, value);
  };
  // PyTorch 2.15 warns of the older names on stderr, so a user of an older one sets them.
  if (Set("TORCH_NCCL_TRACE_BUFFER_SIZE").empty()) set(kBuffer, "2000");
  const bool chosen = !Set(kDump[0]).empty() || !Set(kDump[1]).empty();
  paths_.dump = !chosen ? own_ : !Set(kDump[0]).empty() ? Set(kDump[0]) : Set(kDump[1]);
  if (!chosen) set(kDump[0], own_);
  paths_.pipe = Set(kPipe).empty() ? own_ : Set(kPipe);
  set(kPipe, own_);
  SweepLeft();
}

void Flight::Remove() const {
  std::error_code error;
  ForEachBeside(own_, [&](const std::string& path) {
    if (path.starts_with(own_)) fs::remove(path, error);
  });
}

std::vector<int> Flight::Ask() {
  waiting_.clear();
  std::vector<int> asked;
  ForEachBeside(paths_.pipe, [&](const std::string& path) {
    const int rank = RankOf(path, paths_.pipe, kPipeEnding);
    if (rank < 0) return;
    // A rank that is gone does not read; nobody waits for one here.
    const Fd pipe(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    struct stat facts;
    if (!pipe.valid() || fstat(pipe.get(), &facts) != 0 || !S_ISFIFO(facts.st_mode)) return;
    const std::int64_t before = WrittenNs(paths_.dump + std::to_string(rank));
    if (write(pipe.get(), "1\n", 2) != 2) return;
    waiting_[rank] = before;
    asked.push_back(rank);
  });
  return asked;
}

std::string Flight::Written(int rank) const {
  const auto asked = waiting_.find(rank);
  const std::string path = paths_.dump + std::to_string(rank);
  if (asked == waiting_.end() || WrittenNs(path) <= asked->second) return "";
  return TextOf(path);
}

// A path of ours for each dump of another watcher's rank.
flight::FlightFiles Flight::Files(FlightElsewhere* elsewhere) const {
  flight::FlightFiles files;
  files.prefix = fs::path(paths_.dump).filename().string();
  for (const auto& [rank, before] : waiting_) {
    const std::string path = paths_.dump + std::to_string(rank);
    if (WrittenNs(path) > before) files.files.push_back({path, files.prefix, rank});
  }
  for (const WrittenDump& dump : elsewhere ? elsewhere->Dumps() : std::vector<WrittenDump>()) {
    if (waiting_.contains(dump.rank)) continue;  // a folder that several watchers share
    const std::string path = fmt::format("{}of_{}", own_, dump.rank);
    std::ofstream(path, std::ios::binary) << dump.bytes;
    files.files.push_back({path, files.prefix, dump.rank});
  }
  std::ranges::sort(files.files, {}, &flight::FlightFile::rank);
  return files;
}

// Of the youngest.
std::int64_t Flight::PipeAgeNs() const {
  std::int64_t age_ns = std::numeric_limits<std::int32_t>::max() * std::int64_t{1'000'000'000};
  ForEachBeside(paths_.pipe, [&](const std::string& path) {
    if (RankOf(path, paths_.pipe, kPipeEnding) < 0) return;
    age_ns = std::min(age_ns, ClockNs(CLOCK_REALTIME) - WrittenNs(path));
  });
  return age_ns;
}

std::optional<flight::FlightDiagnosis> Flight::Judge(double silence_s, FlightElsewhere* elsewhere) {
  const flight::FlightFiles files = Files(elsewhere);
  const bool late = MonotonicNs() - asked_ns_ > kAnswerNs;
  if (files.files.empty() || (files.files.size() < asked_.size() && !late)) {
    if (late) asked_.clear();
    return std::nullopt;
  }
  const Result<flight::FlightJob> job = flight::ReadFlightJob(files);
  if (!job.ok() && !late) return std::nullopt;
  asked_.clear();
  if (!job.ok()) return std::nullopt;
  Result<flight::FlightDiagnosis> diagnosis = flight::DiagnoseFlight(*job, silence_s);
  if (!diagnosis.ok()) return std::nullopt;
  return std::move(*diagnosis);
}

std::optional<flight::FlightDiagnosis> Flight::Look(bool silent, double silence_s,
                                                    FlightElsewhere* elsewhere) {
  const std::int64_t now_ns = MonotonicNs();
  if (silence_s <= 0 || now_ns < next_try_ns_) return std::nullopt;
  next_try_ns_ = now_ns + kBetweenTriesNs;
  if (!asked_.empty()) return Judge(silence_s, elsewhere);
  const auto too_soon = [&] { return static_cast<double>(now_ns - asked_ns_) < silence_s * 1e9; };
  if (!silent || too_soon()) return std::nullopt;
  // PyTorch makes its pipe with the process group. Before that a rank loads, and calls nothing.
  asked_ns_ = std::max(asked_ns_, now_ns - PipeAgeNs());
  if (too_soon()) return std::nullopt;
  asked_ns_ = now_ns;
  for (const int rank : Ask()) asked_.insert(rank);
  for (const int rank : elsewhere ? elsewhere->AskForDumps() : std::vector<int>()) {
    asked_.insert(rank);
  }
  return std::nullopt;
}

}  // namespace lockstep::watch::run
