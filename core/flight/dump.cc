// Reads one rank's dump: version, groups, calls. Calls that were coalesced become one. Every bound
// and type is checked, because a dump may be cut off or foreign.
#include "core/flight/dump.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <unordered_set>
#include <utility>

#include "core/flight/entry.h"

namespace lockstep::flight {
namespace {

using Kind = FlightValue::Kind;

constexpr std::size_t kRanksMax = std::size_t{1} << 24;

class DumpParser {
 public:
  DumpParser(const FlightDocument& document, const std::string& file, FlightTexts& texts)
      : document_(document), file_(file), entries_(document, file, texts), texts_(texts) {}

  Result<FlightDump> Parse(int rank) {
    dump_.rank = rank;
    dump_.file = file_;
    if (!document_.root.Is(Kind::kDictionary)) return Error("holds no dictionary");
    const FlightDocument::Dictionary& root = document_.DictionaryOf(document_.root);
    for (const auto& [key, value] : root) {
      if (key.AsText() == "version") dump_.version = value.AsText();
      if (key.AsText() == "pg_config") LOCKSTEP_RETURN_IF_ERROR(ParseGroups(value));
    }
    LOCKSTEP_RETURN_IF_ERROR(CheckVersion());
    for (const auto& [key, value] : root) {
      if (key.AsText() == "entries") LOCKSTEP_RETURN_IF_ERROR(ParseEntries(value));
    }
    JoinCoalesced();
    DropEarlierLives();
    CountMissed();
    MarkCut();
    return std::move(dump_);
  }

 private:
  Status Error(const std::string& what) const {
    return InvalidInput(
        "{}: {}, so it is no dump of PyTorch's Flight Recorder; name the directory of the files "
        "that TORCH_FR_DUMP_TEMP_FILE or TORCH_NCCL_DEBUG_INFO_TEMP_FILE names",
        file_, what);
  }

  Status CheckVersion() {
    if (dump_.version.empty()) return Error("says no version");
    if (dump_.version.find_first_not_of("0123456789.") != std::string::npos) {
      return Error("says a version that is no number");
    }
    // A new minor number adds fields, a new major one changes them (FlightRecorder.hpp).
    if (dump_.version.starts_with("2.") && dump_.version != "2.0") {
      std::from_chars(dump_.version.data() + 2, dump_.version.data() + dump_.version.size(),
                      dump_.minor);
      return OkStatus();
    }
    return InvalidInput(
        "{}: has format {}, and 2.1 and newer of 2 are read; take the dump with PyTorch 2.4 or "
        "newer",
        file_, dump_.version.substr(0, 16));
  }

  Status ParseGroups(const FlightValue& value) {
    if (!value.Is(Kind::kDictionary)) return Error("holds process groups that are no dictionary");
    for (const auto& [key, config] : document_.DictionaryOf(value)) {
      if (!config.Is(Kind::kDictionary)) return Error("holds a process group without its fields");
      FlightGroup group{.name = std::string(key.AsText())};
      for (const auto& [field, what] : document_.DictionaryOf(config)) {
        if (field.AsText() == "desc") group.description = what.AsText();
        if (field.AsText() == "ranks") LOCKSTEP_RETURN_IF_ERROR(ParseRanks(what, group.ranks));
      }
      ranks_ += group.ranks.size();
      if (ranks_ > kRanksMax) return Error("names more ranks than there can be");
      if (group.name.empty()) {  // gloo's are told before they have a name
        dump_.nameless_ranks = std::move(group.ranks);
      } else if (groups_.emplace(group.name, dump_.groups.size()).second) {
        dump_.groups.push_back(std::move(group));
      }
    }
    return OkStatus();
  }

  // "[0, 1, 2]", or a list.
  Status ParseRanks(const FlightValue& value, std::vector<int>& ranks) const {
    const auto valid = [](std::int64_t rank) {
      return 0 <= rank && rank < static_cast<std::int64_t>(kRanksMax);
    };
    if (value.Is(Kind::kList)) {
      for (const FlightValue& rank : document_.ListOf(value)) {
        if (!rank.Is(Kind::kInteger) || !valid(rank.integer)) return Error("holds no valid ranks");
        ranks.push_back(static_cast<int>(rank.integer));
      }
      return OkStatus();
    }
    const std::string_view text = value.AsText();
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] < '0' || text[i] > '9') {
        ++i;
        continue;
      }
      std::int64_t rank = 0;
      const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), rank);
      if (error != std::errc() || !valid(rank)) return Error("holds no valid ranks");
      ranks.push_back(static_cast<int>(rank));
      i = static_cast<std::size_t>(end - text.data());
    }
    return OkStatus();
  }

  Status ParseEntries(const FlightValue& value) {
    if (!value.Is(Kind::kList)) return Error("holds entries that are no list");
    const FlightDocument::List& list = document_.ListOf(value);
    dump_.calls.reserve(list.size());
    for (const FlightValue& item : list) {
      LOCKSTEP_ASSIGN_OR_RETURN(const FlightEntry entry, entries_.Parse(item));
      Add(entry);
    }
    return OkStatus();
  }

  std::int32_t GroupOf(const FlightEntry& entry) {
    const auto [known, is_new] = groups_.emplace(entry.group, dump_.groups.size());
    if (is_new) {
      dump_.groups.push_back(
          {.name = std::string(entry.group), .description = std::string(entry.description)});
    }
    return static_cast<std::int32_t>(known->second);
  }

  void Add(const FlightEntry& entry) {
    if (dump_.backend.empty()) dump_.backend = entry.backend;
    if (dump_.calls.empty() && entry.record_id > 0) {
      dump_.missed = static_cast<std::uint64_t>(entry.record_id);
    }
    dump_.tells_starts = dump_.tells_starts || entry.started_ns > 0;
    dump_.newest_ns =
        std::max({dump_.newest_ns, entry.call.created_ns, entry.started_ns, entry.completed_ns});
    FlightCall call = entry.call;
    call.ended_ns = entry.completed_ns;
    call.group = GroupOf(entry);
    newest_.resize(dump_.groups.size(), kNone);
    std::size_t& newest = newest_[static_cast<std::size_t>(call.group)];
    const bool after_message = newest != kNone && dump_.calls[newest].point_to_point;
    // Before format 2.3 an entry does not say that it ends a batch of messages.
    if (dump_.minor < 3 && after_message && call.kind == FlightKind::kCoalesced) {
      call.point_to_point = true;
      call.sequence = dump_.calls[newest].sequence;
    }
    newest = dump_.calls.size();
    dump_.calls.push_back(call);
  }

  // Each group counts its collectives and its messages apart.
  static std::size_t LaneOf(const FlightCall& call) {
    return 2 * static_cast<std::size_t>(call.group) + (call.point_to_point ? 1 : 0);
  }

  // "coalesced", "ALLGATHER_coalesced": without tensors, after the calls that were coalesced.
  bool EndsCoalesced(const FlightCall& call) const {
    return call.kind == FlightKind::kCoalesced ||
           (texts_.TextOf(call.name).ends_with("_coalesced") &&
            texts_.TextOf(call.arguments).empty());
  }

  // Calls that were coalesced have one number, and a last entry that stands for all of them. Those
  // of other groups may stand between them, by other threads.
  void JoinCoalesced() {
    std::vector<bool> joined(dump_.calls.size());
    std::vector<std::vector<std::size_t>> runs(2 * dump_.groups.size());
    const auto close = [&](std::vector<std::size_t>& run, bool is_last) {
      if (run.size() > 1 && IsOneCall(run, is_last)) {
        FlightCall& whole = dump_.calls[run.front()];
        whole.cut = !EndsCoalesced(dump_.calls[run.back()]);
        for (std::size_t i = 1; i < run.size(); ++i) {
          Coalesce(whole, dump_.calls[run[i]]);
          joined[run[i]] = true;
        }
      }
      run.clear();
    };
    for (std::size_t i = 0; i < dump_.calls.size(); ++i) {
      const FlightCall& call = dump_.calls[i];
      auto& run = runs[LaneOf(call)];
      const FlightCall* const last = run.empty() ? nullptr : &dump_.calls[run.back()];
      if (last && (last->sequence != call.sequence || EndsCoalesced(*last))) close(run, false);
      run.push_back(i);
    }
    for (auto& run : runs) close(run, true);
    std::size_t index = 0;
    std::erase_if(dump_.calls, [&](const FlightCall&) { return joined[index++]; });
  }

  // Otherwise it is a group that was made anew after its first call.
  bool IsOneCall(const std::vector<std::size_t>& run, bool is_last) const {
    const FlightCall& first = dump_.calls[run.front()];
    return first.point_to_point || EndsCoalesced(dump_.calls[run.back()]) ||
           (is_last && !first.done);
  }

  void Coalesce(FlightCall& whole, const FlightCall& part) {
    if (whole.kind != FlightKind::kCoalesced) whole.parts = PartOf(whole);
    for (const FlightCall* call : {&std::as_const(whole), &part}) {
      if (call->peer >= 0) whole.messages.push_back({call->kind, call->peer});
    }
    if (part.kind != FlightKind::kCoalesced) {
      whole.parts = whole.parts * 0x9e3779b97f4a7c15 + PartOf(part);
      whole.arguments =
          texts_.IdOf(fmt::format("{}, {} {}", Bounded(Content(whole)), texts_.TextOf(part.name),
                                  texts_.TextOf(part.arguments)));
    } else if (whole.kind != FlightKind::kCoalesced) {
      whole.arguments = texts_.IdOf(Content(whole));
    }
    whole.kind = FlightKind::kCoalesced;
    whole.name = texts_.IdOf("coalesced");
    whole.type = texts_.IdOf("");
    whole.peer = -1;
    whole.input_elements += part.input_elements;
    whole.output_elements += part.output_elements;
    // Only the last one has the events that tell.
    whole.done = part.done;
    whole.started = part.started;
    whole.ended_ns = part.ended_ns;
    whole.timed_out = whole.timed_out || part.timed_out;
  }
  // The type of an all-to-all matters only between ranks that exchange something.
  std::uint64_t PartOf(const FlightCall& call) const {
    const bool typed =
        call.kind != FlightKind::kAllToAll && call.input_elements + call.output_elements > 0;
    return std::hash<std::string>()(
        fmt::format("{} {} {} {}", static_cast<int>(call.kind),
                    call.kind == FlightKind::kOther ? texts_.TextOf(call.name) : "",
                    ComparedElements(call), typed ? texts_.TextOf(call.type) : ""));
  }
  std::string Content(const FlightCall& call) const {
    if (call.kind == FlightKind::kCoalesced) return std::string(texts_.TextOf(call.arguments));
    return fmt::format("{} {}", texts_.TextOf(call.name), texts_.TextOf(call.arguments));
  }
  static std::string Bounded(std::string text) {
    constexpr std::size_t kBytes = 1000;
    if (text.size() > kBytes) text = text.substr(0, kBytes) + "…";
    return text;
  }

  // What the groups called that others of their name took the place of meets nothing any more. A
  // group that counts its collectives from the beginning again was destroyed and made anew.
  void DropEarlierLives() {
    struct Life {
      std::uint64_t newest = 0;
      std::size_t begin = 0;  // index of its first call
      std::unordered_set<std::uint64_t> called = {};
    };
    std::vector<Life> lives(dump_.groups.size());
    for (std::size_t i = 0; i < dump_.calls.size(); ++i) {
      const FlightCall& call = dump_.calls[i];
      if (call.point_to_point) continue;
      Life& life = lives[static_cast<std::size_t>(call.group)];
      // Threads that call at once may record two calls the wrong way round.
      const bool from_start = call.sequence <= 1 && life.newest > call.sequence + 1;
      if (from_start || life.called.count(call.sequence) != 0) {
        life = {.begin = i};
        ++dump_.groups[static_cast<std::size_t>(call.group)].lives;
      }
      life.newest = call.sequence;
      life.called.insert(call.sequence);
    }
    std::size_t index = 0;
    std::erase_if(dump_.calls, [&](const FlightCall& call) {
      return index++ < lives[static_cast<std::size_t>(call.group)].begin;
    });
  }

  // A ring loses entries, not calls.
  void MarkCut() {
    std::vector<bool> seen(2 * dump_.groups.size());
    if (dump_.missed == 0) return;
    for (FlightCall& call : dump_.calls) {
      call.cut = call.cut || (!seen[LaneOf(call)] && EndsCoalesced(call));
      seen[LaneOf(call)] = true;
    }
  }

  // A recorder that was reset counts records anew, but not the calls of its groups.
  void CountMissed() {
    std::vector<bool> seen(dump_.groups.size());
    for (const FlightCall& call : dump_.calls) {
      const auto group = static_cast<std::size_t>(call.group);
      if (call.point_to_point || seen[group]) continue;
      seen[group] = true;
      if (call.sequence > 1) dump_.missed = std::max(dump_.missed, call.sequence - 1);
    }
  }

  const FlightDocument& document_;
  const std::string& file_;
  FlightEntryParser entries_;
  FlightTexts& texts_;
  FlightDump dump_;
  std::unordered_map<std::string, std::size_t> groups_;  // by name, of the dump's
  std::size_t ranks_ = 0;                                // named by all groups
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> newest_;  // by group: index of its newest call
};

}  // namespace

std::int32_t FlightTexts::IdOf(std::string_view text) {
  const auto known = ids_.find(text);
  if (known != ids_.end()) return known->second;
  const auto id = static_cast<std::int32_t>(texts_.size());
  texts_.emplace_back(text);
  ids_.emplace(texts_.back(), id);
  return id;
}

std::int64_t ComparedElements(const FlightCall& call) {
  switch (call.kind) {
    case FlightKind::kAllReduce:
    case FlightKind::kReduce:
    case FlightKind::kAllGather:
    case FlightKind::kGather:
      return call.input_elements;
    case FlightKind::kBroadcast:
    case FlightKind::kReduceScatter:
    case FlightKind::kScatter:
      return call.output_elements;
    default:
      return -1;
  }
}

bool LooksLikeFlightDump(std::string_view beginning) {
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  return beginning[first] == '{' || static_cast<unsigned char>(beginning[0]) == 0x80;
}

Result<FlightDump> ReadFlightDump(std::string bytes, int rank, const std::string& file,
                                  FlightTexts& texts) {
  if (!LooksLikeFlightDump(bytes)) {
    return InvalidInput(
        "{}: is neither a pickle of protocol 2 to 5 nor JSON, so it is no dump of PyTorch's Flight "
        "Recorder; name the directory of the dumps",
        file);
  }
  const bool json = static_cast<unsigned char>(bytes[0]) != 0x80;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const FlightDocument document,
      json ? ReadJsonDocument(bytes, file) : ReadPickle(std::move(bytes), file));
  return DumpParser(document, file, texts).Parse(rank);
}

}  // namespace lockstep::flight
