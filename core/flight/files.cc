// PyTorch appends the rank to a prefix that people choose. On several hosts they put the host's
// name into it, or give each host a folder, and a folder can hold the dumps of several jobs. Only
// names are looked at, and the first bytes of files where prefixes or folders compete.
#include "core/flight/files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/flight/dump.h"

namespace lockstep::flight {
namespace {

namespace fs = std::filesystem;

constexpr int kFileRanksMax = 1 << 20;  // more is a date, or the like
constexpr std::size_t kShown = 4;

using ByPrefix = std::map<std::string, std::vector<FlightFile>>;
using Prefixes = std::set<std::string>;

bool ParseName(const fs::path& path, FlightFile& file) {
  std::string name = path.filename().string();
  if (name.ends_with(".json")) name.resize(name.size() - 5);
  std::size_t digits = name.size();
  while (digits > 0 && '0' <= name[digits - 1] && name[digits - 1] <= '9') --digits;
  const auto [end, error] =
      std::from_chars(name.data() + digits, name.data() + name.size(), file.rank);
  file.path = path.string();
  file.prefix = name.substr(0, digits);
  return error == std::errc() && file.rank < kFileRanksMax && !name.starts_with('.');
}

bool BeginsLikeADump(const FlightFile& file) {
  std::array<char, 64> beginning{};
  std::ifstream stream(file.path, std::ios::binary);
  stream.read(beginning.data(), beginning.size());
  return LooksLikeFlightDump({beginning.data(), static_cast<std::size_t>(stream.gcount())});
}

// "'a_' (4 files), 'b_' (2 files)"
std::string Listed(const ByPrefix& groups) {
  std::vector<std::string> texts;
  for (const auto& [prefix, files] : groups) {
    if (texts.size() == kShown) break;
    texts.push_back(
        fmt::format("'{}' ({} file{})", prefix, files.size(), files.size() == 1 ? "" : "s"));
  }
  const std::size_t more = groups.size() - texts.size();
  return fmt::format("{}{}", fmt::join(texts, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

Status Ambiguous(const std::string& directory, const ByPrefix& groups, const std::string& why) {
  return InvalidInput(
      "{}: holds dumps that begin with {}: {}; choose with --prefix=, which takes a part of a name",
      directory, Listed(groups), why);
}

// "nccl_trace_rank_node02_" with one part after the other replaced: "*_trace_rank_node02_" …,
// with that part.
std::vector<std::pair<std::string, std::string>> Patterns(const std::string& prefix) {
  std::vector<std::pair<std::string, std::string>> patterns;
  for (std::size_t begin = 0; begin <= prefix.size();) {
    const std::size_t end = std::min(prefix.find('_', begin), prefix.size());
    const std::string part = prefix.substr(begin, end - begin);
    if (!part.empty())
      patterns.emplace_back(prefix.substr(0, begin) + "*" + prefix.substr(end), part);
    begin = end + 1;
  }
  return patterns;
}

enum class Sharing { kNoRank, kSomeRanks, kARankOfAll };

Sharing SharingOf(const Prefixes& prefixes, const ByPrefix& groups) {
  std::map<int, std::size_t> count;
  for (const std::string& prefix : prefixes) {
    std::set<int> ranks;
    for (const FlightFile& file : groups.at(prefix)) ranks.insert(file.rank);
    for (const int rank : ranks) ++count[rank];
  }
  std::size_t most = 0;
  for (const auto& [rank, times] : count) most = std::max(most, times);
  return most <= 1                 ? Sharing::kNoRank
         : most == prefixes.size() ? Sharing::kARankOfAll
                                   : Sharing::kSomeRanks;
}

// Prefixes that are hosts of one job, by what they have in common: "nccl_trace_rank_*_".
Result<std::map<std::string, Prefixes>> SpreadJobs(const ByPrefix& groups,
                                                   const std::string& directory) {
  std::map<std::string, Prefixes> jobs;
  for (const auto& [prefix, files] : groups) {
    for (const auto& [pattern, part] : Patterns(prefix)) jobs[pattern].insert(prefix);
  }
  std::map<std::string, std::string> job_of;
  for (auto job = jobs.begin(); job != jobs.end();) {
    const auto& [pattern, prefixes] = *job;
    const Sharing sharing = SharingOf(prefixes, groups);
    if (prefixes.size() < 2 || sharing == Sharing::kARankOfAll) {
      job = jobs.erase(job);
      continue;
    }
    if (sharing == Sharing::kSomeRanks) {
      return Ambiguous(directory, groups, "a rank has two dumps, so they are not of one job");
    }
    for (const std::string& prefix : prefixes) {
      if (job_of.emplace(prefix, pattern).second) continue;
      return Ambiguous(directory, groups, fmt::format("'{}' could belong to two jobs", prefix));
    }
    ++job;
  }
  return jobs;
}

std::string RanksText(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size())) {
    return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  }
  return fmt::format("{} ranks from {} to {}", ranks.size(), ranks.front(), ranks.back());
}

// "node01: ranks 0 to 1; node02: ranks 2 to 3"
std::string HostsText(const std::vector<FlightHost>& hosts) {
  std::vector<std::string> texts;
  for (const FlightHost& host : hosts) {
    if (texts.size() == kShown) break;
    texts.push_back(host.name + ": " + RanksText(host.ranks));
  }
  if (hosts.size() > texts.size()) {
    texts.push_back(fmt::format("and {} more", hosts.size() - texts.size()));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

void AddHost(const std::string& name, std::vector<FlightFile>& files, FlightFiles& job) {
  FlightHost& host = job.hosts.emplace_back();
  host.name = name;
  for (FlightFile& file : files) {
    host.ranks.push_back(file.rank);
    job.files.push_back(std::move(file));
  }
  std::ranges::sort(host.ranks);
}

FlightFiles SpreadJob(const std::string& pattern, const Prefixes& prefixes, ByPrefix& groups) {
  FlightFiles job;
  job.prefix = pattern;
  for (const std::string& prefix : prefixes) {
    std::string host;
    for (const auto& [of, part] : Patterns(prefix)) {
      if (of == pattern) host = part;
    }
    AddHost(host, groups.at(prefix), job);
    groups.erase(prefix);
  }
  job.notes.push_back(fmt::format("by their names the dumps are of one job on {} hosts ({})",
                                  job.hosts.size(), HostsText(job.hosts)));
  return job;
}

// Of several prefixes those that stand before no dump.
void DropForeign(ByPrefix& groups, std::vector<std::string>& notes) {
  ByPrefix foreign;
  for (const auto& [prefix, files] : groups) {
    if (std::ranges::none_of(files, BeginsLikeADump)) foreign.emplace(prefix, files);
  }
  if (foreign.empty() || foreign.size() == groups.size()) return;
  for (const auto& [prefix, files] : foreign) groups.erase(prefix);
  notes.push_back("files that are no dumps were left alone: those that begin with " +
                  Listed(foreign));
}

ByPrefix GroupsOf(std::vector<FlightFile> files) {
  ByPrefix groups;
  for (FlightFile& file : files) {
    const std::string prefix = file.prefix;
    groups[prefix].push_back(std::move(file));
  }
  return groups;
}

void SortByRank(std::vector<FlightFile>& files) {
  std::ranges::sort(files, [](const FlightFile& a, const FlightFile& b) {
    return std::pair(a.rank, a.path) < std::pair(b.rank, b.path);
  });
}

Result<std::vector<FlightFiles>> JobsOf(ByPrefix groups, const std::string& directory) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto spread, SpreadJobs(groups, directory));
  std::vector<FlightFiles> jobs;
  for (const auto& [pattern, prefixes] : spread) {
    jobs.push_back(SpreadJob(pattern, prefixes, groups));
  }
  for (auto& [prefix, files] : groups) jobs.push_back({prefix, {}, std::move(files), {}});
  for (FlightFiles& job : jobs) SortByRank(job.files);
  std::ranges::sort(jobs, {}, &FlightFiles::prefix);
  return jobs;
}

// The files of a directory that are named as dumps are; with `prefix` those that have it, or where
// none does, that contain it.
std::vector<FlightFile> FilesIn(fs::directory_iterator entries, const std::string& prefix) {
  std::vector<FlightFile> files;
  std::error_code error;
  for (const fs::directory_entry& entry : entries) {
    FlightFile file;
    if (entry.is_regular_file(error) && ParseName(entry.path(), file)) {
      files.push_back(std::move(file));
    }
  }
  if (prefix.empty()) return files;
  const bool exact =
      std::ranges::any_of(files, [&](const FlightFile& file) { return file.prefix == prefix; });
  std::erase_if(files, [&](const FlightFile& file) {
    return exact ? file.prefix != prefix : file.prefix.find(prefix) == std::string::npos;
  });
  return files;
}

// {name of a folder in the directory: the dumps in it}
ByPrefix FoldersOf(const std::string& directory, const std::string& prefix) {
  std::error_code error;
  ByPrefix folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory(error) || name.starts_with('.')) continue;
    std::vector<FlightFile> files = FilesIn(fs::directory_iterator(entry.path(), error), prefix);
    std::erase_if(files, [](const FlightFile& file) { return !BeginsLikeADump(file); });
    if (!files.empty()) folders.emplace(name, std::move(files));
  }
  return folders;
}

// Of folders that are hosts of one job. kInvalidInput: two dumps are of one rank.
Result<FlightFiles> JoinFolders(const std::string& directory, ByPrefix folders) {
  FlightFiles job;
  const std::string first = folders.begin()->first;
  std::set<std::string> prefixes;
  for (auto& [name, files] : folders) {
    for (const FlightFile& file : files) prefixes.insert(file.prefix);
    AddHost(name, files, job);
  }
  SortByRank(job.files);
  const auto twice = std::ranges::adjacent_find(job.files, {}, &FlightFile::rank);
  if (twice != job.files.end()) {
    return InvalidInput(
        "{}: the dumps are in its folders, and {} and {} are both of rank {}, so they are not of "
        "one job; name one folder, as {}, or choose with --prefix=, which takes a part of a name",
        directory, twice->path, std::next(twice)->path, twice->rank,
        (fs::path(directory) / first).string());
  }
  job.prefix = "*/" + (prefixes.size() == 1 ? *prefixes.begin() : "*");
  job.notes.push_back(fmt::format("by their folders the dumps are of one job on {} hosts ({})",
                                  job.hosts.size(), HostsText(job.hosts)));
  return job;
}

// Where no dump is in the directory itself.
Result<std::vector<FlightFiles>> FindInFolders(const std::string& directory,
                                               const std::string& prefix) {
  ByPrefix folders = FoldersOf(directory, prefix);
  if (folders.empty()) {
    return InvalidInput(
        "{}: holds no file whose name is {} and a rank; name the directory that "
        "TORCH_FR_DUMP_TEMP_FILE or TORCH_NCCL_DEBUG_INFO_TEMP_FILE pointed to",
        directory, prefix.empty() ? "a prefix" : "'" + prefix + "'");
  }
  if (folders.size() == 1) {
    return FindFlightFiles((fs::path(directory) / folders.begin()->first).string(), prefix);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(FlightFiles job, JoinFolders(directory, std::move(folders)));
  std::vector<FlightFiles> jobs;
  jobs.push_back(std::move(job));
  return jobs;
}

}  // namespace

Result<std::vector<FlightFiles>> GroupFlightFiles(std::vector<FlightFile> files,
                                                  const std::string& directory) {
  return JobsOf(GroupsOf(std::move(files)), directory);
}

Result<std::vector<FlightFiles>> FindFlightFiles(const std::string& directory,
                                                 const std::string& prefix) {
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error) {
    return InvalidInput("{}: {}; name the directory of the Flight Recorder's dumps", directory,
                        error.message());
  }
  std::vector<FlightFile> files = FilesIn(std::move(entries), prefix);
  if (files.empty()) return FindInFolders(directory, prefix);
  ByPrefix groups = GroupsOf(std::move(files));
  std::vector<std::string> notes;
  DropForeign(groups, notes);
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<FlightFiles> jobs, JobsOf(std::move(groups), directory));
  for (FlightFiles& job : jobs) job.notes.insert(job.notes.end(), notes.begin(), notes.end());
  return jobs;
}

}  // namespace lockstep::flight
