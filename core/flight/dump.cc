// Reads one rank's dump: version, groups, calls. Calls that were coalesced become one. Every bound
// and type is checked, because a dump may be cut off or foreign.
#include "core/flight/dump.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
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
    DropEarlierLives();
    CountMissed();
    return std::move(dump_);
  }

 private:
  Status Error(const std::string& what) const {
    return InvalidInput(
        "{}: {}, so it is no dump of PyTorch's Flight Recorder; name the directory of the files "
        "that TORCH_FR_DUMP_TEMP_FILE or TORCH_NCCL_DEBUG_INFO_TEMP_FILE names",
        file_, what);
  }

  Status CheckVersion() const {
    if (dump_.version.empty()) return Error("says no version");
    if (dump_.version.find_first_not_of("0123456789.") != std::string::npos) {
      return Error("says a version that is no number");
    }
    // A new minor number adds fields, a new major one changes them (FlightRecorder.hpp).
    if (dump_.version.starts_with("2.") && dump_.version != "2.0") return OkStatus();
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

  // Calls that were coalesced have one number, and a last entry that stands for all of them.
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
    BeginLife(call);
    if (!dump_.calls.empty()) {
      FlightCall& last = dump_.calls.back();
      if (last.group == call.group && last.sequence == call.sequence &&
          last.point_to_point == call.point_to_point) {
        Coalesce(last, call);
        return;
      }
    }
    dump_.calls.push_back(call);
  }

  void Coalesce(FlightCall& whole, const FlightCall& part) {
    const bool end = part.kind == FlightKind::kCoalesced;
    if (!end) {
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
  std::string Content(const FlightCall& call) const {
    if (call.kind == FlightKind::kCoalesced) return std::string(texts_.TextOf(call.arguments));
    return fmt::format("{} {}", texts_.TextOf(call.name), texts_.TextOf(call.arguments));
  }
  static std::string Bounded(std::string text) {
    constexpr std::size_t kBytes = 1000;
    if (text.size() > kBytes) text = text.substr(0, kBytes) + "…";
    return text;
  }

  // A group that counts its collectives from the beginning again was destroyed and made anew.
  void BeginLife(const FlightCall& call) {
    if (call.point_to_point) return;
    lives_.resize(dump_.groups.size());
    Life& life = lives_[static_cast<std::size_t>(call.group)];
    // Threads that call at once may record two calls the wrong way round.
    const bool anew = call.sequence <= 1 && life.newest > call.sequence + 1;
    if (anew) life.begin = dump_.calls.size();
    life.newest = call.sequence;
  }

  // What the groups called that others of their name took the place of meets nothing any more.
  void DropEarlierLives() {
    std::size_t index = 0;
    lives_.resize(dump_.groups.size());
    std::erase_if(dump_.calls, [&](const FlightCall& call) {
      return index++ < lives_[static_cast<std::size_t>(call.group)].begin;
    });
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
  struct Life {
    std::uint64_t newest = 0;
    std::size_t begin = 0;  // index of its first call in the dump's
  };
  std::vector<Life> lives_;  // by group
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
