// Turns journals into dumps that PyTorch's analyzer accepts. It wants backends named nccl and a
// frame for every call, so purposes are written as frames. Journals that lost their beginning start
// with a later record number.
#include "core/flight/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/collective/collective.h"
#include "core/flight/pickle_writer.h"
#include "core/journal/purpose.h"
#include "core/verdict/rank_view.h"

namespace lockstep::flight {
namespace {

// A communicator, and which of its lives: numbers begin again with every new one.
using GroupKey = std::pair<std::uint16_t, int>;

struct Entry {
  GroupKey group;
  JournalEvent call;
  Ticks created = 0;
  Ticks started = 0;  // 0: it did not
  Ticks ended = 0;
  bool done = false;
  bool failed = false;
};

struct History {
  int rank = 0;
  std::uint64_t first_record = 0;
  std::vector<Entry> entries;
};

History HistoryOf(const RankEvidence& evidence) {
  History history{.rank = evidence.rank, .first_record = 0, .entries = {}};
  std::map<std::uint16_t, int> lives;
  std::map<std::tuple<std::uint16_t, int, std::uint64_t>, std::size_t> index_of;
  for (const JournalEvent& event : evidence.journal.events) {
    if (!verdict::IsCollective(event)) continue;
    if (event.kind == journal::EventKind::kEnqueue && event.sequence == 0)
      ++lives[event.communicator];
    // The life that is cut off at the beginning counts as the first one.
    const int life = std::max(1, lives[event.communicator]);
    const auto [known, is_new] =
        index_of.try_emplace({event.communicator, life, event.sequence}, history.entries.size());
    if (is_new) {
      if (history.entries.empty() && evidence.journal.missed > 0) {
        history.first_record = event.sequence;
      }
      history.entries.push_back({.group = {event.communicator, life}, .call = event});
      history.entries.back().created = event.ticks;
    }
    Entry& entry = history.entries[known->second];
    if (event.kind == journal::EventKind::kStart) entry.started = event.ticks;
    if (event.kind == journal::EventKind::kEnd || event.kind == journal::EventKind::kError) {
      entry.ended = event.ticks;
      (event.kind == journal::EventKind::kEnd ? entry.done : entry.failed) = true;
    }
  }
  return history;
}

class DumpWriter {
 public:
  using Members = std::map<GroupKey, std::set<int>>;

  DumpWriter(const FlightClock& clock, double timeout_seconds, const Members& members)
      : clock_(clock),
        timeout_ms_(static_cast<std::int64_t>(timeout_seconds * 1000)),
        members_(members) {}

  std::string Write(const History& history) {
    pickle_.BeginDictionary();
    Field("version").Text("2.10");
    Field("comm_lib_version").Text("");
    Field("pg_config");
    WriteGroups(history);
    Field("pg_status");
    WriteStatus(history);
    Field("entries");
    pickle_.BeginList();
    std::uint64_t record = history.first_record;
    for (const Entry& entry : history.entries) WriteEntry(history.rank, record++, entry);
    pickle_.EndList();
    pickle_.EndDictionary();
    return pickle_.Take();
  }

 private:
  PickleWriter& Field(std::string_view name) {
    pickle_.Text(name);
    return pickle_;
  }
  static std::string NameOf(const GroupKey& group) {
    return group.second == 1 ? fmt::format("{}", group.first)
                             : fmt::format("{}.{}", group.first, group.second);
  }
  static std::string DescriptionOf(const GroupKey& group) {
    return group.first == 0 ? "default_pg" : fmt::format("communicator {}", group.first);
  }
  std::int64_t Time(Ticks ticks) const {
    const double since =
        static_cast<double>(static_cast<std::int64_t>(ticks - clock_.origin_ticks));
    return clock_.origin_unix_ns + static_cast<std::int64_t>(since * clock_.ns_per_tick);
  }
  void TimeOrNone(Ticks ticks) {
    if (ticks == 0) return pickle_.None();
    pickle_.Integer(Time(ticks));
  }
  int SizeOfGroup(const Entry& entry) const {
    return static_cast<int>(members_.at(entry.group).size());
  }

  void WriteGroups(const History& history) {
    std::set<GroupKey> own;
    for (const Entry& entry : history.entries) own.insert(entry.group);
    pickle_.BeginDictionary();
    for (const GroupKey& group : own) {
      Field(NameOf(group));
      pickle_.BeginDictionary();
      Field("name").Text(NameOf(group));
      Field("desc").Text(DescriptionOf(group));
      Field("ranks").Text(fmt::format("[{}]", fmt::join(members_.at(group), ", ")));
      pickle_.EndDictionary();
    }
    pickle_.EndDictionary();
  }

  void WriteStatus(const History& history) {
    struct Last {
      std::int64_t enqueued = -1, started = -1, completed = -1;
    };
    std::map<GroupKey, Last> status;
    for (const Entry& entry : history.entries) {
      Last& last = status[entry.group];
      const auto number = static_cast<std::int64_t>(entry.call.sequence) + 1;
      last.enqueued = std::max(last.enqueued, number);
      if (entry.started != 0) last.started = std::max(last.started, number);
      if (entry.done) last.completed = std::max(last.completed, number);
    }
    pickle_.BeginDictionary();
    for (const auto& [group, last] : status) {
      Field(NameOf(group));
      pickle_.BeginDictionary();
      Field("last_enqueued_collective").Integer(last.enqueued);
      Field("last_started_collective").Integer(last.started);
      Field("last_completed_collective").Integer(last.completed);
      pickle_.EndDictionary();
    }
    pickle_.EndDictionary();
  }

  static std::string CallName(int rank, const JournalEvent& call) {
    static constexpr const char* kNames[] = {"all_reduce",           "broadcast",
                                             "all_reduce_barrier",   "_all_gather_base",
                                             "_reduce_scatter_base", "reduce"};
    if (call.collective == Collective::kSend) {
      return fmt::format("nccl:send {}->{}", rank, call.root);
    }
    if (call.collective == Collective::kRecv) {
      return fmt::format("nccl:recv {}<-{}", rank, call.root);
    }
    return fmt::format("nccl:{}", kNames[static_cast<std::size_t>(call.collective)]);
  }

  void WriteTensors(std::string_view sizes, std::string_view types, std::int64_t elements,
                    collective::DataType type) {
    Field(sizes).BeginList();
    pickle_.BeginList();
    pickle_.Integer(elements);
    pickle_.EndList();
    pickle_.EndList();
    Field(types).BeginList();
    pickle_.Text(collective::TorchNameOf(type));
    pickle_.EndList();
  }

  void WriteArguments(const Entry& entry) {
    const JournalEvent& call = entry.call;
    const bool barrier = call.collective == Collective::kBarrier;  // of one f32, as PyTorch's
    const std::int64_t count = barrier ? 1 : call.count;
    const std::int64_t all = count * SizeOfGroup(entry);
    const collective::DataType type = barrier ? collective::DataType::kF32 : call.type;
    const bool scatters = call.collective == Collective::kReduceScatter;
    const bool gathers = call.collective == Collective::kAllGather;
    WriteTensors("input_sizes", "input_dtypes", scatters ? all : count, type);
    WriteTensors("output_sizes", "output_dtypes", gathers ? all : count, type);
  }

  void WriteFrames(const JournalEvent& call) {
    const std::string purpose = journal::Describe(journal::UnpackAnnotation(call.value));
    Field("frames").BeginList();
    if (!purpose.empty()) {
      pickle_.BeginDictionary();
      Field("name").Text(purpose);
      Field("filename").Text("lockstep");
      Field("line").Integer(0);
      pickle_.EndDictionary();
    }
    pickle_.EndList();
  }

  void WriteEntry(int rank, std::uint64_t record, const Entry& entry) {
    const JournalEvent& call = entry.call;
    const bool message = collective::IsMessage(call.collective);
    const auto number = static_cast<std::int64_t>(call.sequence) + 1;
    pickle_.BeginDictionary();
    WriteFrames(call);
    Field("record_id").Integer(static_cast<std::int64_t>(record));
    Field("pg_id").Integer(entry.group.first);
    Field("process_group").Pair(NameOf(entry.group), DescriptionOf(entry.group));
    Field("thread_name").Text("");
    Field("thread_id").Text("");
    Field("collective_seq_id").Integer(message ? 0 : number);
    Field("p2p_seq_id").Integer(message ? number : 0);
    Field("op_id").Integer(number);
    Field("profiling_name").Text(CallName(rank, call));
    Field("time_created_ns").Integer(Time(entry.created));
    if (entry.done && entry.started != 0) {
      const auto ticks = static_cast<double>(entry.ended - entry.started);
      Field("duration_ms").Real(ticks * clock_.ns_per_tick * 1e-6);
    }
    WriteArguments(entry);
    const bool started = entry.started != 0 || entry.failed;
    Field("state").Text(entry.done ? "completed" : started ? "started" : "scheduled");
    Field("time_discovered_started_ns");
    TimeOrNone(entry.started);
    Field("time_discovered_completed_ns");
    TimeOrNone(entry.done ? entry.ended : 0);
    Field("retired").Bool(entry.done || entry.failed);
    Field("timeout_ms").Integer(timeout_ms_);
    Field("is_p2p").Bool(message);
    pickle_.EndDictionary();
  }

  const FlightClock& clock_;
  const std::int64_t timeout_ms_;
  const Members& members_;
  PickleWriter pickle_;
};

}  // namespace

std::vector<std::pair<int, std::string>> FlightDumpsOf(const std::vector<RankEvidence>& evidence,
                                                       const FlightClock& clock,
                                                       double timeout_seconds) {
  std::vector<History> histories;
  DumpWriter::Members members;
  for (const RankEvidence& rank : evidence) {
    histories.push_back(HistoryOf(rank));
    members[{0, 1}].insert(rank.rank);
    for (const Entry& entry : histories.back().entries) members[entry.group].insert(rank.rank);
  }
  for (auto& [group, ranks] : members) {
    if (group.first == 0) ranks = members[{0, 1}];
  }
  std::vector<std::pair<int, std::string>> dumps;
  for (const History& history : histories) {
    DumpWriter writer(clock, timeout_seconds, members);
    dumps.emplace_back(history.rank, writer.Write(history));
  }
  return dumps;
}

}  // namespace lockstep::flight
