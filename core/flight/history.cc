// Translates dumps to events for core/verdict, which knows neither names nor sizes. Only kind and
// position of a call are kept. A call that PyTorch gave up is told from one that ended, by the
// other ranks' dumps.
#include "core/flight/history.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

namespace lockstep::flight {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// Dumps that were asked for together are written within it.
constexpr std::int64_t kTogetherNs = kNsPerSecond;

Collective CollectiveOf(FlightKind kind) {
  static constexpr Collective kCollectives[] = {
      Collective::kAllReduce, Collective::kBroadcast,     Collective::kReduce,
      Collective::kAllGather, Collective::kReduceScatter, Collective::kReduce,
      Collective::kBroadcast, Collective::kAllGather,     Collective::kBarrier,
      Collective::kSend,      Collective::kRecv,          Collective::kAllReduce,
      Collective::kAllReduce};  // by FlightKind
  return kCollectives[static_cast<std::size_t>(kind)];
}

// Nobody can complete it before all of the group entered it.
bool NeedsAll(const FlightCall& call) {
  switch (call.kind) {
    case FlightKind::kAllReduce:
    case FlightKind::kAllGather:
    case FlightKind::kReduceScatter:
    case FlightKind::kAllToAll:
    case FlightKind::kBarrier:
      return !call.point_to_point;
    default:
      return false;
  }
}

// Of one call: who had left it first (it ended, or its time-out passed), and who entered it last.
struct Meeting {
  std::int64_t left_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t entered_ns = 0;
  bool ended = false;
  int left = 0;  // ranks
  int entered = 0;

  void Add(const FlightCall& call, int rank) {
    const bool was_ended = call.done && call.ended_ns > 0;
    const bool times_out = call.created_ns > 0 && call.timeout_ms > 0;
    const std::int64_t own_ns =
        was_ended ? call.ended_ns : call.created_ns + call.timeout_ms * 1'000'000;
    if ((was_ended || times_out) && own_ns < left_ns) {
      left_ns = own_ns;
      ended = was_ended;
      left = rank;
    }
    if (call.created_ns < entered_ns) return;
    entered_ns = call.created_ns;
    entered = rank;
  }
};

// Which calls that are not done have begun, of a dump that does not say so. The oldest has. So has
// the oldest of a group whose calls went on beside those that are older: nothing holds it up.
class OpenCalls {
 public:
  explicit OpenCalls(const FlightDump& dump) : lanes_(2 * dump.groups.size()) {}

  // For the calls in their order.
  bool Begins(const FlightCall& call, bool done) {
    Lane& lane = lanes_[2 * static_cast<std::size_t>(call.group) + (call.point_to_point ? 1 : 0)];
    ++number_;
    if (done) {
      lane.last_done = number_;
      return false;
    }
    const bool begins = !lane.open && lane.last_done >= newest_open_;
    lane.open = true;
    newest_open_ = number_;
    return begins;
  }

 private:
  struct Lane {
    std::size_t last_done = 0;  // numbers of calls; 0: none
    bool open = false;
  };
  std::vector<Lane> lanes_;
  std::size_t number_ = 0;
  std::size_t newest_open_ = 0;
};

class Translator {
  using How = FlightHistory::Apart::How;

 public:
  explicit Translator(const FlightJob& job) : job_(job) {}

  Result<FlightHistory> Run(std::optional<double> deadline_seconds) {
    // Every team has a second number for its calls between two ranks.
    if (2 * job_.teams.size() + 2 > std::numeric_limits<std::uint16_t>::max()) {
      return InvalidInput(
          "{}: the dumps name {} process groups, and at most {} can be judged together; give the "
          "dumps of fewer ranks",
          job_.dumps.front().file, job_.teams.size(), (1 << 15) - 2);
    }
    for (const FlightDump& dump : job_.dumps) {
      if (!dump.backend.empty()) history_.setting.backend = dump.backend;
    }
    if (history_.setting.backend != "gloo") history_.setting.backend = "nccl";
    NumberTeams();
    FindFurthest();
    FindApart();
    FindMoment();
    for (std::size_t d = 0; d < job_.dumps.size(); ++d) AddRank(d);
    history_.setting.deadline_seconds = deadline_seconds.value_or(OwnDeadline());
    for (const int rank : job_.missing) {
      RankEvidence lost;
      lost.rank = rank;
      lost.state = verdict::ProcessState::kLost;
      history_.evidence.push_back(std::move(lost));
    }
    return std::move(history_);
  }

 private:
  void NumberTeams() {
    const std::size_t ranks = job_.dumps.size() + job_.missing.size();
    bool world = false;
    for (std::size_t t = 0; t < job_.teams.size(); ++t) {
      const FlightTeam& team = job_.teams[t];
      const bool all = !world && team.told && team.ranks.size() == ranks;
      const auto number = static_cast<std::uint16_t>(all ? 0 : t + 1);
      world = world || all;
      history_.communicators.push_back(number);
      if (!all && team.told) {
        history_.setting.groups.push_back({number, team.description, team.ranks});
      }
    }
  }

  std::size_t TeamIndex(std::size_t dump, const FlightCall& call) const {
    return static_cast<std::size_t>(job_.team_of[dump][static_cast<std::size_t>(call.group)]);
  }

  // How far the last of each team came, of those whose dumps are here.
  void FindFurthest() {
    furthest_.assign(job_.teams.size(), std::numeric_limits<std::uint64_t>::max());
    slowest_.assign(job_.teams.size(), 0);
    for (std::size_t d = 0; d < job_.dumps.size(); ++d) {
      std::vector<std::optional<std::uint64_t>> own(job_.dumps[d].groups.size());
      for (const FlightCall& call : job_.dumps[d].calls) {
        if (call.point_to_point) continue;
        auto& furthest = own[static_cast<std::size_t>(call.group)];
        furthest = std::max(furthest.value_or(0), call.sequence);
      }
      for (std::size_t g = 0; g < own.size(); ++g) {
        const auto team = static_cast<std::size_t>(job_.team_of[d][g]);
        if (!own[g] || *own[g] >= furthest_[team]) continue;
        furthest_[team] = *own[g];
        slowest_[team] = d;
      }
    }
  }

  void FindApart() {
    std::unordered_map<std::uint64_t, Meeting> meetings;
    for (std::size_t d = 0; d < job_.dumps.size(); ++d) {
      for (const FlightCall& call : job_.dumps[d].calls) {
        if (!NeedsAll(call) || !job_.TeamOf(d, call).aligned) continue;
        Meeting& meeting =
            meetings[static_cast<std::uint64_t>(TeamIndex(d, call)) << 40 ^ call.sequence];
        meeting.Add(call, job_.dumps[d].rank);
        if (meeting.entered_ns - meeting.left_ns <= kClocksNs) continue;
        history_.apart = {meeting.left, meeting.ended ? How::kEnded : How::kTimedOut,
                          meeting.entered,
                          static_cast<double>(meeting.entered_ns - meeting.left_ns) / kNsPerSecond};
        return;
      }
    }
    FindLeftOver();
  }

  // By the times of the files, which copies may make newer, or cut to whole seconds. A file that is
  // older than its own calls has the time of something else.
  void FindLeftOver() {
    const auto first_ns = [](const FlightDump& dump) {
      return dump.calls.empty() ? 0 : dump.calls.front().created_ns;
    };
    const FlightDump& newest = *std::ranges::max_element(job_.dumps, {}, first_ns);
    for (const FlightDump& dump : job_.dumps) {
      const std::int64_t latest_ns = dump.written_at_ns + kNsPerSecond;
      if (dump.calls.empty() || latest_ns <= dump.newest_ns || latest_ns > first_ns(newest)) {
        continue;
      }
      history_.apart = {dump.rank, How::kWritten, newest.rank,
                        static_cast<double>(first_ns(newest) - dump.written_at_ns) / kNsPerSecond};
      return;
    }
  }

  // A call that ended although a rank of its team never entered it: with events that say so, that
  // rank's dump is older; without them PyTorch gave it up, unless that rank's dump is older. A call
  // that some may leave before all came was given up if its time-out has passed, too.
  bool GaveUp(std::size_t d, const FlightCall& call) {
    if (!call.done || call.point_to_point || !job_.TeamOf(d, call).aligned) return false;
    const std::size_t team = TeamIndex(d, call);
    if (call.sequence <= furthest_[team]) return false;
    const FlightDump& slowest = job_.dumps[slowest_[team]];
    const bool events = job_.dumps[d].backend == "nccl" || job_.dumps[d].backend == "xccl";
    const bool together = slowest.written_at_ns + kTogetherNs >= job_.dumps[d].written_at_ns;
    if (!NeedsAll(call)) return !events && together && IsTimedOut(call);
    if (!events && together) return true;
    auto& outdated = history_.outdated;
    if (std::ranges::find(outdated, slowest.rank) == outdated.end()) {
      outdated.push_back(slowest.rank);
    }
    return false;
  }

  // When the dumps were taken, as far as they and the times of their files tell.
  void FindMoment() {
    moment_ns_ = std::max(job_.newest_ns, job_.written_at_ns);
    for (const FlightDump& dump : job_.dumps) {
      for (const FlightCall& call : dump.calls) {
        if (!call.timed_out) continue;
        moment_ns_ = std::max(moment_ns_, call.created_ns + call.timeout_ms * 1'000'000);
      }
    }
    history_.by_file_times = moment_ns_ == job_.written_at_ns;
    history_.seconds = SecondsSince(job_.newest_ns);
  }

  // PyTorch ends the job for a call that is under way for its own time-out. Its watchdog writes the
  // dumps after that, but copies may keep only the whole seconds of a file's time (tar, scp -p).
  bool IsTimedOut(const FlightCall& call) const {
    if (call.timeout_ms == 0 || call.created_ns == 0) return false;
    const bool cut = job_.written_at_ns % kNsPerSecond == 0;
    const std::int64_t latest_ns = job_.written_at_ns + (cut ? kNsPerSecond : 0);
    return std::max(moment_ns_, latest_ns) - call.created_ns >= call.timeout_ms * 1'000'000;
  }

  // Beside a call that timed out, short silence will do. Without any, other calls go on, and who
  // is late in one of them is not to blame.
  double OwnDeadline() const {
    constexpr double kTogetherSeconds = static_cast<double>(kTogetherNs) / kNsPerSecond;
    return timed_out_ && history_.seconds >= kTogetherSeconds ? kTogetherSeconds
                                                              : kFlightDeadlineSeconds;
  }

  double SecondsSince(std::int64_t time_ns) const {
    return time_ns == 0 ? 0 : static_cast<double>(moment_ns_ - time_ns) / kNsPerSecond;
  }

  void AddRank(std::size_t d) {
    const FlightDump& dump = job_.dumps[d];
    history_.given_up.emplace_back();
    RankEvidence rank;
    rank.rank = dump.rank;
    rank.journal.missed = dump.missed;
    rank.seconds_silent = SecondsSince(dump.newest_ns == 0 ? job_.newest_ns : dump.newest_ns);
    OpenCalls open(dump);
    rank.journal.events.reserve(dump.calls.size() + 1);
    for (const FlightCall& call : dump.calls) {
      const bool gave_up = GaveUp(d, call);
      if (gave_up) history_.given_up.back().push_back(&call);
      const bool done = call.done && !gave_up;
      JournalEvent event = EventOf(d, call);
      event.kind = done ? journal::EventKind::kEnd : journal::EventKind::kEnqueue;
      Append(rank, event);
      const bool begins = open.Begins(call, done);
      if (done) continue;
      timed_out_ = timed_out_ || IsTimedOut(call);
      event.kind = journal::EventKind::kStart;
      if (dump.tells_starts ? call.started : begins) Append(rank, event);
    }
    history_.evidence.push_back(std::move(rank));
  }

  JournalEvent EventOf(std::size_t d, const FlightCall& call) const {
    const std::size_t team = TeamIndex(d, call);
    JournalEvent event{.ticks = static_cast<Ticks>(call.created_ns),
                       .sequence = call.sequence,
                       .count = 1,
                       .communicator = call.point_to_point ? static_cast<std::uint16_t>(
                                                                 job_.teams.size() + 1 + team)
                                                           : history_.communicators[team],
                       .collective = CollectiveOf(call.kind)};
    event.root = -1;  // nobody says which
    event.phase = journal::Phase::kMeasure;
    return event;
  }
  static void Append(RankEvidence& rank, const JournalEvent& event) {
    rank.journal.events.push_back(event);
    rank.journal.events.back().index = rank.journal.missed + rank.journal.events.size();
  }

  const FlightJob& job_;
  FlightHistory history_;
  std::vector<std::uint64_t> furthest_;  // by team
  std::vector<std::size_t> slowest_;     // by team, whose dump
  std::int64_t moment_ns_ = 0;
  bool timed_out_ = false;  // some call
};

}  // namespace

Result<FlightHistory> HistoryOf(const FlightJob& job, std::optional<double> deadline_seconds) {
  return Translator(job).Run(deadline_seconds);
}

}  // namespace lockstep::flight
