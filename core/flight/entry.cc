// Reads one entry, field by field. The names of calls follow PyTorch's own table
// (flight_recorder/components/types.py). Frames and keys are shared between entries, so each is
// looked at once, and all looking is counted against a bound.
#include "core/flight/entry.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace lockstep::flight {
namespace {

using Kind = FlightValue::Kind;

// Source: torch/distributed/flight_recorder/components/types.py, COLLECTIVES and P2P.
constexpr std::pair<std::string_view, FlightKind> kKinds[] = {
    {"all_reduce", FlightKind::kAllReduce},
    {"allreduce_coalesced", FlightKind::kAllReduce},
    {"all_reduce_barrier", FlightKind::kBarrier},
    {"barrier", FlightKind::kBarrier},
    {"broadcast", FlightKind::kBroadcast},
    {"_broadcast_oop", FlightKind::kBroadcast},
    {"reduce", FlightKind::kReduce},
    {"_reduce_oop", FlightKind::kReduce},
    {"all_gather", FlightKind::kAllGather},
    {"_all_gather_base", FlightKind::kAllGather},
    {"all_gather_single", FlightKind::kAllGather},
    {"all_gather_into_tensor_coalesced", FlightKind::kAllGather},
    {"ALLGATHER_coalesced", FlightKind::kAllGather},
    {"reduce_scatter", FlightKind::kReduceScatter},
    {"_reduce_scatter_base", FlightKind::kReduceScatter},
    {"reduce_scatter_single", FlightKind::kReduceScatter},
    {"reduce_scatter_tensor_coalesced", FlightKind::kReduceScatter},
    {"REDUCE_SCATTER_coalesced", FlightKind::kReduceScatter},
    {"gather", FlightKind::kGather},
    {"scatter", FlightKind::kScatter},
    {"all_to_all", FlightKind::kAllToAll},
    {"all_to_all_single", FlightKind::kAllToAll},
    {"all_to_all_v_single", FlightKind::kAllToAll},
    {"all_to_allv", FlightKind::kAllToAll},
    {"send", FlightKind::kSend},
    {"recv", FlightKind::kRecv},
    {"coalesced", FlightKind::kCoalesced},
};

constexpr std::int64_t kSequenceMax = std::int64_t{1} << 40;  // 35 years of a thousand a second
constexpr std::int64_t kTimeMaxNs = std::int64_t{1} << 62;    // the year 2116

// What is no time counts as none.
std::int64_t TimeOrNone(std::int64_t value, std::int64_t most) {
  return 0 <= value && value <= most ? value : 0;
}

// Backends whose operations end when an event of the device says so.
bool HasEvents(std::string_view backend) { return backend == "nccl" || backend == "xccl"; }

// "0->1" of a send, "1<-0" of a recv: this rank first.
std::int32_t PeerOf(std::string_view peers) {
  const std::size_t arrow = peers.find_first_of("<-");
  if (arrow == std::string_view::npos || arrow + 2 > peers.size()) return -1;
  std::int32_t peer = -1;
  std::from_chars(peers.data() + arrow + 2, peers.data() + peers.size(), peer);
  return peer;
}

FlightKind KindOfCall(std::string_view name) {
  for (const auto& [known, kind] : kKinds) {
    if (known == name) return kind;
  }
  return FlightKind::kOther;
}

}  // namespace

FlightEntryParser::Field FlightEntryParser::FieldOf(std::string_view key) {
  static constexpr std::string_view kNames[] = {"record_id",
                                                "process_group",
                                                "collective_seq_id",
                                                "seq_id",
                                                "p2p_seq_id",
                                                "is_p2p",
                                                "profiling_name",
                                                "input_sizes",
                                                "output_sizes",
                                                "input_dtypes",
                                                "output_dtypes",
                                                "state",
                                                "retired",
                                                "time_created_ns",
                                                "time_discovered_started_ns",
                                                "time_discovered_completed_ns",
                                                "timeout_ms",
                                                "frames"};  // by Field
  static_assert(std::size(kNames) == kFields);
  return static_cast<Field>(std::ranges::find(kNames, key) - std::begin(kNames));
}

Status FlightEntryParser::Error(const std::string& what) const {
  return InvalidInput("{}: entry {} {}; take the dump again with a PyTorch of 2.4 or newer", file_,
                      number_, what);
}

bool FlightEntryParser::Spend(std::size_t looks) {
  constexpr std::uint64_t kLooksMax = std::uint64_t{1} << 28;
  looks_ += looks;
  return looks_ <= kLooksMax;
}

void FlightEntryParser::Collect(const FlightValue& value) {
  fields_.fill(FlightValue());
  const FlightDocument::Dictionary& pairs = document_.DictionaryOf(value);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [key, item] = pairs[i];
    if (!key.Is(Kind::kText)) continue;
    if (i >= keys_.size()) keys_.resize(i + 1, {nullptr, kFields});
    if (keys_[i].first != key.text || keys_[i].first == nullptr) {
      keys_[i] = {key.text, FieldOf(key.AsText())};
    }
    if (keys_[i].second != kFields) fields_[static_cast<std::size_t>(keys_[i].second)] = item;
  }
}

std::int64_t FlightEntryParser::IntegerAt(Field field) const {
  const FlightValue& value = At(field);
  return value.Is(Kind::kInteger) ? value.integer : 0;
}

bool FlightEntryParser::BoolAt(Field field) const {
  return At(field).Is(Kind::kBool) && At(field).integer != 0;
}

Result<FlightEntry> FlightEntryParser::Parse(const FlightValue& value) {
  ++number_;
  if (!value.Is(Kind::kDictionary)) return Error("is no dictionary");
  if (!Spend(document_.DictionaryOf(value).size())) return Error("is named too often");
  Collect(value);
  FlightEntry entry;
  entry.record_id = IntegerAt(kRecordId);
  entry.call.created_ns = TimeOrNone(IntegerAt(kCreated), kTimeMaxNs);
  entry.call.timeout_ms = TimeOrNone(IntegerAt(kTimeout), kTimeMaxNs / 2'000'000);
  entry.started_ns = TimeOrNone(IntegerAt(kStarted), kTimeMaxNs);
  entry.completed_ns = TimeOrNone(IntegerAt(kCompleted), kTimeMaxNs);
  LOCKSTEP_RETURN_IF_ERROR(ParseGroup(entry));
  LOCKSTEP_RETURN_IF_ERROR(ParseName(entry));
  LOCKSTEP_RETURN_IF_ERROR(ParseProgress(entry));
  LOCKSTEP_RETURN_IF_ERROR(ParseArguments(entry.call));
  entry.call.place = PlaceOf(At(kFrames));
  if (!Spend(0)) return Error("names its values too often");
  return entry;
}

Status FlightEntryParser::ParseGroup(FlightEntry& entry) const {
  const FlightValue& group = At(kGroup);
  entry.group = group.AsText();
  if (!group.Is(Kind::kList)) {
    return group.Is(Kind::kText) ? OkStatus() : Error("has no process_group");
  }
  const FlightDocument::List& names = document_.ListOf(group);
  if (names.empty() || !names[0].Is(Kind::kText)) return Error("has no process_group");
  entry.group = names[0].AsText();
  if (names.size() > 1) entry.description = names[1].AsText();
  return OkStatus();
}

Status FlightEntryParser::ParseName(FlightEntry& entry) {
  std::string_view name = At(kName).AsText();
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos || colon + 1 == name.size()) {
    return Error("has no profiling_name such as nccl:all_reduce");
  }
  entry.backend = name.substr(0, colon);
  name.remove_prefix(colon + 1);
  const std::size_t blank = name.find(' ');
  if (blank != std::string_view::npos) entry.call.peer = PeerOf(name.substr(blank + 1));
  entry.call.name = texts_.IdOf(name.substr(0, blank));
  entry.call.kind = KindOfCall(name.substr(0, blank));
  const bool to_peer = entry.call.kind == FlightKind::kSend || entry.call.kind == FlightKind::kRecv;
  entry.call.point_to_point = BoolAt(kIsPeer) || to_peer;
  const bool old = At(kCollectiveSequence).Is(Kind::kNone);
  const Field field = entry.call.point_to_point ? kPeerSequence
                      : old                     ? kSequence
                                                : kCollectiveSequence;
  const std::int64_t sequence = IntegerAt(field);
  if (!At(field).Is(Kind::kInteger) || sequence < 0 || sequence >= kSequenceMax) {
    return Error("has no sequence number");
  }
  entry.call.sequence = static_cast<std::uint64_t>(sequence);
  return OkStatus();
}

Status FlightEntryParser::ParseProgress(FlightEntry& entry) const {
  const std::string_view state = At(kState).AsText();
  const bool completed = state == "completed";
  if (!completed && state != "started" && state != "scheduled") {
    return Error("has no state of scheduled, started and completed");
  }
  const bool retired = BoolAt(kRetired);
  const bool events = HasEvents(entry.backend);
  entry.call.done = completed || (retired && !events);
  entry.call.started = completed || state == "started";
  entry.call.timed_out = retired && events && !completed;
  return OkStatus();
}

// Adds a tensor's elements; "256" or "2, 3" goes to `shape`, unless that is null.
Status FlightEntryParser::ParseShape(const FlightValue& sizes, std::int64_t& elements,
                                     std::string* shape) {
  constexpr std::size_t kDimensionsMax = 64;  // PyTorch's own limit
  constexpr std::int64_t kElementsMax = std::int64_t{1} << 60;
  if (!sizes.Is(Kind::kList)) return Error("has sizes that are no lists");
  const FlightDocument::List& dimensions = document_.ListOf(sizes);
  if (dimensions.size() > kDimensionsMax) return Error("has sizes of too many dimensions");
  if (!Spend(1 + dimensions.size())) return Error("names its values too often");
  std::int64_t product = 1;
  for (const FlightValue& dimension : dimensions) {
    if (!dimension.Is(Kind::kInteger) || dimension.integer < 0) return Error("has wrong sizes");
    if (dimension.integer > 0 && product > kElementsMax / dimension.integer) {
      return Error("has sizes beyond all memory");
    }
    product *= dimension.integer;
    if (shape == nullptr) continue;
    *shape += fmt::format("{}{}", shape->empty() ? "" : ", ", dimension.integer);
  }
  if (elements > kElementsMax - product) return Error("has sizes beyond all memory");
  elements += product;
  return OkStatus();
}

// "Float[256]", or "Float[2], Long[4]".
Status FlightEntryParser::ParseTensors(Field sizes, Field types, std::int64_t& elements,
                                       std::string& text, std::string_view& type) {
  constexpr std::size_t kShown = 4;
  if (!At(sizes).Is(Kind::kList)) return OkStatus();
  const FlightDocument::List& tensors = document_.ListOf(At(sizes));
  const FlightDocument::List* names =
      At(types).Is(Kind::kList) ? &document_.ListOf(At(types)) : nullptr;
  if (names != nullptr && !names->empty()) type = names->front().AsText();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::string shape;
    LOCKSTEP_RETURN_IF_ERROR(ParseShape(tensors[i], elements, i < kShown ? &shape : nullptr));
    if (i > kShown) continue;
    const std::string_view own =
        names != nullptr && i < names->size() ? (*names)[i].AsText() : type;
    text += i == kShown ? fmt::format(" and {} more", tensors.size() - kShown)
                        : fmt::format("{}{}[{}]", i == 0 ? "" : ", ", own, shape);
  }
  return OkStatus();
}

Status FlightEntryParser::ParseArguments(FlightCall& call) {
  std::string input, output;
  std::string_view input_type, output_type;
  LOCKSTEP_RETURN_IF_ERROR(
      ParseTensors(kInputSizes, kInputTypes, call.input_elements, input, input_type));
  LOCKSTEP_RETURN_IF_ERROR(
      ParseTensors(kOutputSizes, kOutputTypes, call.output_elements, output, output_type));
  // ProcessGroupNCCL hands a scatter's tensors over the other way round. What the root gives then
  // stands where results do, and on the others an undefined tensor.
  const bool gives =
      At(kOutputSizes).Is(Kind::kList) && document_.ListOf(At(kOutputSizes)).size() > 1;
  const bool undefined = call.output_elements == 0 && call.input_elements > 0;
  if (call.kind == FlightKind::kScatter && (gives || undefined)) {
    std::swap(call.input_elements, call.output_elements);
    std::swap(input, output);
    std::swap(input_type, output_type);
    if (undefined) input.clear();
  }
  // What only the root gives or takes is not the same on all ranks.
  const bool by_output = call.kind == FlightKind::kScatter || call.kind == FlightKind::kBroadcast;
  call.type = texts_.IdOf(by_output && !output_type.empty() ? output_type : input_type);
  if (!output.empty() && output != input) input += (input.empty() ? "-> " : " -> ") + output;
  call.arguments = texts_.IdOf(input);
  return OkStatus();
}

std::int32_t FlightEntryParser::FrameOf(const FlightValue& frame) {
  std::string_view function, path;
  std::int64_t line = 0;
  for (const auto& [key, value] : document_.DictionaryOf(frame)) {
    if (key.AsText() == "name") function = value.AsText();
    if (key.AsText() == "filename") path = value.AsText();
    if (key.AsText() == "line" && value.Is(Kind::kInteger)) line = value.integer;
  }
  if (path.empty() || path.find("/torch/") != std::string_view::npos) return 1;
  const std::size_t slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return 2 + texts_.IdOf(fmt::format("{}:{} in {}", path, line, function));
}

std::int32_t FlightEntryParser::PlaceOf(const FlightValue& frames) {
  if (frames_.empty()) frames_.resize(document_.dictionaries() + 1);
  if (!frames.Is(Kind::kList)) return texts_.IdOf("");
  for (const FlightValue& frame : document_.ListOf(frames)) {
    if (!frame.Is(Kind::kDictionary) || !Spend(1)) break;
    std::int32_t& known = frames_[static_cast<std::size_t>(frame.integer)];
    if (known == 0) known = FrameOf(frame);
    if (known >= 2) return known - 2;
  }
  return texts_.IdOf("");
}

}  // namespace lockstep::flight
