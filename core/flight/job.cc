// Reads the dumps of a job and works out the members of each process group.
// Groups of one name may have other ranks in other dumps; these are different groups.
#include "core/flight/job.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace lockstep::flight {
namespace {

constexpr std::int64_t kFileBytesMax = std::int64_t{1} << 28;
// The ranks of one job stop within its time-outs of each other, and clocks of hosts differ by less.
constexpr std::int64_t kHourNs = std::int64_t{3600} * 1'000'000'000;

Result<FlightDump> ReadFile(const FlightFile& file, FlightTexts& texts) {
  struct stat status = {};
  std::ifstream stream(file.path, std::ios::binary);
  if (!stream || ::stat(file.path.c_str(), &status) != 0) {
    return EnvironmentError("{}: cannot be read: {}; check its permissions", file.path,
                            std::strerror(errno));
  }
  if (status.st_size > kFileBytesMax) {
    return InvalidInput(
        "{}: has {} bytes, and at most {} are read; take the dump with a smaller "
        "TORCH_FR_BUFFER_SIZE",
        file.path, status.st_size, kFileBytesMax);
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  stream.read(bytes.data(), status.st_size);
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  LOCKSTEP_ASSIGN_OR_RETURN(FlightDump dump,
                            ReadFlightDump(std::move(bytes), file.rank, file.path, texts));
  dump.written_at_ns = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
  return dump;
}

bool IsDefault(const std::string& name, const std::string& description) {
  return name == "0" || description == "default_pg";
}

// The members of the whole job, as a dump tells them; none where it does not.
std::vector<int> WorldOf(const FlightDump& dump) {
  for (const FlightGroup& group : dump.groups) {
    if (IsDefault(group.name, group.description)) return group.ranks;
  }
  return {};
}

// Files that only their names join may be left over from another job.
Status CheckOneJob(const std::vector<FlightDump>& dumps) {
  const auto two_jobs = [](const FlightDump& a, const FlightDump& b, const std::string& why) {
    return InvalidInput("{} and {} are of two jobs ({}); choose one with --prefix=", a.file, b.file,
                        why);
  };
  const FlightDump& newest = *std::ranges::max_element(dumps, {}, &FlightDump::newest_ns);
  for (const FlightDump& dump : dumps) {
    if (dump.newest_ns > 0 && newest.newest_ns - dump.newest_ns > kHourNs) {
      return two_jobs(dump, newest,
                      fmt::format("the last calls are {:.1f} h apart",
                                  static_cast<double>(newest.newest_ns - dump.newest_ns) /
                                      static_cast<double>(kHourNs)));
    }
    const std::vector<int> world = WorldOf(newest);
    const std::vector<int> other = WorldOf(dump);
    if (!world.empty() && !other.empty() && world != other) {
      return two_jobs(dump, newest,
                      fmt::format("of {} and of {} ranks", other.size(), world.size()));
    }
  }
  return OkStatus();
}

// A host's digits before a rank make another rank: "node02" and 5 are "node025".
Status CheckRank(const FlightFile& file, const FlightDump& dump) {
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  const std::string digits = name.substr(file.prefix.size());
  const std::vector<int> world = WorldOf(dump);
  std::string why;
  if (digits.starts_with('0') && file.rank > 0) {
    why = "PyTorch writes no zeros before a rank";
  } else if (!world.empty() && std::ranges::find(world, dump.rank) == world.end()) {
    why =
        fmt::format("its job has ranks {} to {}", std::ranges::min(world), std::ranges::max(world));
  } else {
    return OkStatus();
  }
  return InvalidInput(
      "{}: rank {} is none, because {}; if a host's name stands before the rank, put '_' between "
      "them, and let TORCH_FR_DUMP_TEMP_FILE end in one",
      file.path, file.rank, why);
}

class TeamFinder {
 public:
  explicit TeamFinder(FlightJob& job) : job_(job) {}

  void Run() {
    FindRanks();
    job_.team_of.resize(job_.dumps.size());
    for (std::size_t d = 0; d < job_.dumps.size(); ++d) {
      job_.team_of[d].assign(job_.dumps[d].groups.size(), -1);
      for (std::size_t g = 0; g < job_.dumps[d].groups.size(); ++g) AddTold(d, g);
    }
    for (std::size_t d = 0; d < job_.dumps.size(); ++d) {
      for (std::size_t g = 0; g < job_.dumps[d].groups.size(); ++g) {
        if (job_.team_of[d][g] < 0) AddUntold(d, g);
      }
    }
    for (FlightTeam& team : job_.teams) std::ranges::sort(team.ranks);
  }

 private:
  void FindRanks() {
    std::vector<bool> known(static_cast<std::size_t>(job_.dumps.back().rank) + 1, true);
    const auto add = [&](const std::vector<int>& ranks) {
      for (const int rank : ranks) {
        const auto index = static_cast<std::size_t>(rank);
        if (index >= known.size()) known.resize(index + 1);
        known[index] = true;
      }
    };
    for (const FlightDump& dump : job_.dumps) {
      add(dump.nameless_ranks);
      for (const FlightGroup& group : dump.groups) add(group.ranks);
      CompareWorlds(dump);
      told_world_ = told_world_ || !dump.nameless_ranks.empty() || !WorldOf(dump).empty();
    }
    std::size_t next = 0;  // of the dumps
    for (std::size_t rank = 0; rank < known.size(); ++rank) {
      if (!known[rank]) continue;
      world_.push_back(static_cast<int>(rank));
      const bool dumped = next < job_.dumps.size() && job_.dumps[next].rank == world_.back();
      if (dumped) {
        ++next;
      } else {
        job_.missing.push_back(world_.back());
      }
    }
  }

  void CompareWorlds(const FlightDump& dump) {
    // A dump also tells of groups that were destroyed.
    const auto defaults = std::ranges::count_if(dump.groups, [](const FlightGroup& group) {
      return IsDefault(group.name, group.description);
    });
    if (defaults != 1) return;
    std::vector<int> world = WorldOf(dump);
    std::ranges::sort(world);
    if (world.empty() || world == first_world_) return;
    if (first_world_.empty()) {
      first_world_ = std::move(world);
      first_rank_ = dump.rank;
    } else if (job_.two_worlds.empty()) {
      job_.two_worlds = fmt::format("rank {} tells of {} ranks, rank {} of {}", first_rank_,
                                    first_world_.size(), dump.rank, world.size());
    }
  }

  std::int32_t NewTeam(const FlightGroup& group, std::vector<int> ranks, bool told) {
    job_.teams.push_back({group.name, group.description, std::move(ranks), told});
    return static_cast<std::int32_t>(job_.teams.size() - 1);
  }

  void AddTold(std::size_t d, std::size_t g) {
    const FlightGroup& group = job_.dumps[d].groups[g];
    const bool is_default = IsDefault(group.name, group.description);
    if (group.ranks.empty() && !is_default) return;
    std::vector<int> ranks = group.ranks.empty() ? world_ : group.ranks;
    std::ranges::sort(ranks);
    auto [known, is_new] = told_.try_emplace({group.name, ranks}, -1);
    if (is_new) {
      known->second = NewTeam(group, std::move(ranks), true);
      job_.teams.back().open = is_default && !told_world_;
      by_name_[group.name].push_back(known->second);
    }
    job_.team_of[d][g] = known->second;
  }

  // By what other dumps tell of a group of that name; otherwise whoever shows it belongs to it.
  void AddUntold(std::size_t d, std::size_t g) {
    const FlightGroup& group = job_.dumps[d].groups[g];
    const int rank = job_.dumps[d].rank;
    for (const std::int32_t index : by_name_[group.name]) {
      FlightTeam& team = job_.teams[static_cast<std::size_t>(index)];
      const bool member = std::ranges::binary_search(team.ranks, rank);
      if (team.told && !member) continue;
      if (!team.told) team.ranks.push_back(rank);
      job_.team_of[d][g] = index;
      return;
    }
    const std::int32_t index = NewTeam(group, {rank}, false);
    by_name_[group.name].push_back(index);
    job_.team_of[d][g] = index;
    job_.notes.push_back(fmt::format(
        "the dumps do not say who belongs to process group {}: it is taken to be the ranks whose "
        "dumps show a call on it",
        group.description.empty() ? group.name : group.description));
  }

  FlightJob& job_;
  std::vector<int> world_;
  std::vector<int> first_world_;  // as the first dump tells it that does
  int first_rank_ = 0;            // whose
  bool told_world_ = false;       // otherwise it ends with the last dump
  std::map<std::pair<std::string, std::vector<int>>, std::int32_t> told_;
  std::map<std::string, std::vector<std::int32_t>> by_name_;
};

// Whether the ranks of a group count its collectives alike.
class Alignment {
 public:
  explicit Alignment(FlightJob& job) : job_(job), numbers_(job.teams.size()) {}

  void Run() {
    for (std::size_t d = 0; d < job_.dumps.size(); ++d) AddDump(d);
    for (std::size_t t = 0; t < job_.teams.size(); ++t) Judge(job_.teams[t], numbers_[t]);
  }

 private:
  using Numbers = std::vector<std::uint64_t>;  // of calls, ascending
  struct NumbersOf {
    struct Span {
      std::uint64_t first, last;
      std::size_t calls;
    };
    std::vector<Span> dumps;
    Numbers all;
    std::set<int> lives;
    bool foreign = false;  // a name may be that of several groups; gloo's are unique
  };

  void AddDump(std::size_t d) {
    const FlightDump& dump = job_.dumps[d];
    std::vector<Numbers> own(dump.groups.size());
    for (const FlightCall& call : dump.calls) {
      if (!call.point_to_point) own[static_cast<std::size_t>(call.group)].push_back(call.sequence);
    }
    for (std::size_t g = 0; g < own.size(); ++g) {
      if (own[g].empty()) continue;
      std::ranges::sort(own[g]);
      NumbersOf& of = numbers_[static_cast<std::size_t>(job_.team_of[d][g])];
      of.dumps.push_back({own[g].front(), own[g].back(), own[g].size()});
      Numbers all;
      std::ranges::set_union(of.all, own[g], std::back_inserter(all));
      of.all = std::move(all);
      of.lives.insert(dump.groups[g].lives);
      of.foreign = of.foreign || dump.backend != "gloo";
    }
  }

  // Between the first and the last call of a dump stand all that the others made there.
  static bool LeavesOut(const NumbersOf::Span& own, const Numbers& all) {
    const auto begin = std::ranges::lower_bound(all, own.first);
    const auto end = std::ranges::upper_bound(all, own.last);
    return static_cast<std::size_t>(end - begin) != own.calls;
  }

  void Judge(FlightTeam& team, const NumbersOf& of) {
    const bool nameless = !team.told && (of.foreign || team.name.empty());
    const bool leaves_out = std::ranges::any_of(
        of.dumps, [&](const NumbersOf::Span& own) { return LeavesOut(own, of.all); });
    team.aligned = !nameless && !leaves_out && of.lives.size() < 2;
    if (team.aligned || nameless) return;  // of those that nobody tells there is a note
    job_.notes.push_back(fmt::format(
        "the calls of process group {} cannot be compared: {}",
        team.description.empty() ? team.name : team.description,
        leaves_out ? "its ranks count them differently (PyTorch 2.4 counts batches of messages)"
                   : "it was made anew, and its ranks show a different number of times"));
  }

  FlightJob& job_;
  std::vector<NumbersOf> numbers_;  // by team
};

}  // namespace

Result<FlightJob> FlightJobOf(FlightTexts texts, std::vector<FlightDump> dumps) {
  if (dumps.empty()) return InvalidInput("no dump of any rank was given; name some");
  FlightJob job;
  job.texts = std::move(texts);
  job.dumps = std::move(dumps);
  std::ranges::sort(job.dumps, {}, &FlightDump::rank);
  for (std::size_t i = 0; i < job.dumps.size(); ++i) {
    const FlightDump& dump = job.dumps[i];
    if (i > 0 && job.dumps[i - 1].rank == dump.rank) {
      return InvalidInput("{} and {} are both of rank {}; keep one of them", job.dumps[i - 1].file,
                          dump.file, dump.rank);
    }
    job.newest_ns = std::max(job.newest_ns, dump.newest_ns);
    if (i == 0 || dump.written_at_ns < job.written_at_ns) job.written_at_ns = dump.written_at_ns;
  }
  TeamFinder(job).Run();
  Alignment(job).Run();
  return job;
}

Result<FlightJob> ReadFlightJob(const FlightFiles& files) {
  FlightTexts texts;
  std::vector<FlightDump> dumps;
  for (const FlightFile& file : files.files) {
    LOCKSTEP_ASSIGN_OR_RETURN(FlightDump dump, ReadFile(file, texts));
    LOCKSTEP_RETURN_IF_ERROR(CheckRank(file, dump));
    dumps.push_back(std::move(dump));
  }
  if (!files.hosts.empty()) LOCKSTEP_RETURN_IF_ERROR(CheckOneJob(dumps));
  LOCKSTEP_ASSIGN_OR_RETURN(FlightJob job, FlightJobOf(std::move(texts), std::move(dumps)));
  job.notes.insert(job.notes.begin(), files.notes.begin(), files.notes.end());
  return job;
}

}  // namespace lockstep::flight
