// Steps of a script from text, by a table of verbs. It tells without running a program whether its
// results are known, and how many collectives a rank calls.
#include "stress/scenario/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/base/nearest.h"
#include "core/base/units.h"

namespace lockstep::stress::scenario {
namespace {

using Words = std::vector<std::string_view>;
using Communicators = std::vector<ScriptCommunicator>;
using Kind = ScriptStep::Kind;

constexpr std::int64_t kMostTimes = 1'000'000'000;
constexpr std::int64_t kMostCount = std::int64_t{1} << 34;

Words Split(std::string_view text) {
  Words words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<std::int64_t> ToCount(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0) return std::nullopt;
  return value;
}

Status WrongCount(std::string_view what, std::string_view word) {
  return InvalidInput("'{}' is no {}; write a whole number", word, what);
}

Result<std::size_t> FindCommunicator(std::string_view name,
                                     const std::vector<ScriptCommunicator>& communicators) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    if (communicators[i].name == name) return i;
    names.push_back(communicators[i].name);
  }
  return InvalidInput("communicator '{}' is unknown; {}choose from {}", name,
                      NearestHint(name, names), fmt::join(names, ", "));
}

// "op=max", "root=1", "peer=1".
Status ReadOption(std::string_view word, int size, collective::Operation& operation) {
  const std::size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  const bool point_to_point = operation.collective == collective::Collective::kSend ||
                              operation.collective == collective::Collective::kRecv;
  if (key == "op" && collective::InfoOf(operation.collective).reduces) {
    LOCKSTEP_ASSIGN_OR_RETURN(operation.reduction, collective::ParseReduction("op", value));
    return OkStatus();
  }
  const std::string_view root = point_to_point ? "peer" : "root";
  if (key == root && (point_to_point || collective::InfoOf(operation.collective).rooted)) {
    const std::optional<std::int64_t> rank = ToCount(value);
    if (!rank || *rank >= size) {
      return InvalidInput("'{}' names none of the communicator's {} ranks; write {}=0", word, size,
                          root);
    }
    operation.root = static_cast<int>(*rank);
    return OkStatus();
  }
  return InvalidInput("'{}' is no option of {}; write op=, root= or peer= where they belong", word,
                      collective::NameOf(operation.collective));
}

// "stream=NAME", "wait=NAME": whether the word is one of them.
Result<bool> ReadStreamOption(std::string_view word, ScriptStep& step) {
  const std::size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  if (key != "stream" && key != "wait") return false;
  if (equals == std::string_view::npos || equals + 1 == word.size()) {
    return InvalidInput("'{}' names no stream; write {}=NAME", word, key);
  }
  (key == "stream" ? step.stream : step.wait) = std::string(word.substr(equals + 1));
  return true;
}

// "COLLECTIVE COMMUNICATOR [TYPE COUNT] [OPTION…]"
Result<ScriptStep> ParseCollective(const Words& words, const Communicators& communicators) {
  ScriptStep step;
  step.kind = Kind::kCollective;
  LOCKSTEP_ASSIGN_OR_RETURN(step.operation.collective,
                            collective::ParseCollective("step", words[0]));
  const bool barrier = step.operation.collective == collective::Collective::kBarrier;
  const std::size_t needed = barrier ? 2 : 4;
  if (words.size() < needed) {
    return InvalidInput("incomplete; write '{} world{}'", words[0], barrier ? "" : " f32 1024");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(step.communicator, FindCommunicator(words[1], communicators));
  if (!barrier) {
    LOCKSTEP_ASSIGN_OR_RETURN(step.operation.type, collective::ParseDataType("step", words[2]));
    const std::optional<std::int64_t> count = ToCount(words[3]);
    if (!count || *count > kMostCount) return WrongCount("number of elements", words[3]);
    step.operation.count = *count;
  }
  const int size = static_cast<int>(communicators[step.communicator].members.size());
  for (std::size_t i = needed; i < words.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool of_streams, ReadStreamOption(words[i], step));
    if (!of_streams) LOCKSTEP_RETURN_IF_ERROR(ReadOption(words[i], size, step.operation));
  }
  return step;
}

template <Kind kind>
Result<ScriptStep> ParseTime(const Words& words, const Communicators&) {
  if (words.size() < 2) return InvalidInput("write '{} 100ms'", words[0]);
  ScriptStep step;
  step.kind = kind;
  for (std::size_t i = 2; i < words.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool of_streams, ReadStreamOption(words[i], step));
    if (!of_streams) return InvalidInput("write '{} 100ms'", words[0]);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const double seconds, ParseSeconds("step", words[1]));
  if (!(seconds >= 0 && seconds < 86'400)) {
    return InvalidInput("'{}' is not from 0 to a day", words[1]);
  }
  step.ns = static_cast<std::int64_t>(seconds * 1e9);
  return step;
}

Result<ScriptStep> ParseWords(const Words& words, const Communicators& communicators);

// "repeat N STEP"
Result<ScriptStep> ParseRepeat(const Words& words, const Communicators& communicators) {
  const auto times = words.size() > 2 ? ToCount(words[1]) : std::nullopt;
  if (!times || *times > kMostTimes) {
    return InvalidInput("write 'repeat 10 all_reduce world f32 1024'");
  }
  if (words[2] == "repeat") return InvalidInput("a repeat inside a repeat; write one");
  LOCKSTEP_ASSIGN_OR_RETURN(ScriptStep step,
                            ParseWords(Words(words.begin() + 2, words.end()), communicators));
  step.times = *times;
  return step;
}

// "churn COMMUNICATOR TYPE COUNT"
Result<ScriptStep> ParseChurn(const Words& words, const Communicators& communicators) {
  Words inner = words;
  inner[0] = "all_reduce";
  LOCKSTEP_ASSIGN_OR_RETURN(ScriptStep step, ParseCollective(inner, communicators));
  if (!step.stream.empty() || !step.wait.empty()) {
    return InvalidInput("churn has no streams; remove stream= and wait=");
  }
  step.kind = Kind::kChurn;
  return step;
}

// "split COMMUNICATOR"
Result<ScriptStep> ParseSplit(const Words& words, const Communicators& communicators) {
  if (words.size() != 2) return InvalidInput("write 'split world'");
  ScriptStep step;
  LOCKSTEP_ASSIGN_OR_RETURN(step.communicator, FindCommunicator(words[1], communicators));
  step.kind = Kind::kSplit;
  return step;
}

// "wait STREAM"
Result<ScriptStep> ParseWait(const Words& words, const Communicators&) {
  if (words.size() != 2) return InvalidInput("write 'wait NAME' with the name of a stream");
  return ScriptStep{.kind = Kind::kWait, .wait = std::string(words[1])};
}

// "allocate BYTES"
Result<ScriptStep> ParseAllocate(const Words& words, const Communicators&) {
  const Result<std::int64_t> bytes =
      words.size() == 2 ? ParseBytes("step", words[1]) : InvalidInput("");
  if (!bytes.ok() || *bytes < 1) return InvalidInput("write 'allocate 1M'");
  return ScriptStep{.kind = Kind::kAllocate, .bytes = *bytes};
}

// "exit CODE"
Result<ScriptStep> ParseExit(const Words& words, const Communicators&) {
  const auto code = words.size() == 2 ? ToCount(words[1]) : std::nullopt;
  if (!code || *code > 255) return InvalidInput("write 'exit 3' with a code from 0 to 255");
  return ScriptStep{.kind = Kind::kExit, .exit_code = static_cast<int>(*code)};
}

// A verb without further words.
template <Kind kind>
Result<ScriptStep> ParseAlone(const Words& words, const Communicators&) {
  if (words.size() > 1) {
    return InvalidInput("'{}' stands alone; write '{}'", words[0], words[0]);
  }
  ScriptStep step;
  step.kind = kind;
  return step;
}

struct Verb {
  std::string_view name;
  Result<ScriptStep> (*parse)(const Words& words, const Communicators& communicators);
};
constexpr Verb kVerbs[] = {
    {"all_reduce", ParseCollective},
    {"broadcast", ParseCollective},
    {"barrier", ParseCollective},
    {"all_gather", ParseCollective},
    {"reduce_scatter", ParseCollective},
    {"reduce", ParseCollective},
    {"send", ParseCollective},
    {"recv", ParseCollective},
    {"sleep", ParseTime<Kind::kSleep>},
    {"compute", ParseTime<Kind::kCompute>},
    {"load", ParseTime<Kind::kLoad>},
    {"exit", ParseExit},
    {"throw", ParseAlone<Kind::kThrow>},
    {"hang", ParseAlone<Kind::kHang>},
    {"finish", ParseAlone<Kind::kFinish>},
    {"churn", ParseChurn},
    {"split", ParseSplit},
    {"repeat", ParseRepeat},
    {"wait", ParseWait},
    {"allocate", ParseAllocate},
    {"kernel", ParseAlone<Kind::kKernel>},
};
constexpr auto kVerbNames = [] {
  std::array<std::string_view, std::size(kVerbs)> names;
  std::transform(std::begin(kVerbs), std::end(kVerbs), names.begin(),
                 [](const Verb& verb) { return verb.name; });
  return names;
}();

Result<ScriptStep> ParseWords(const Words& words, const Communicators& communicators) {
  if (words.empty()) return InvalidInput("an empty step; write 'all_reduce world f32 1024'");
  const auto known = std::ranges::find(kVerbNames, words[0]);
  if (known == kVerbNames.end()) {
    return InvalidInput("'{}' is no step; {}choose from {}", words[0],
                        NearestHint(words[0], kVerbNames), fmt::join(kVerbNames, ", "));
  }
  return kVerbs[known - kVerbNames.begin()].parse(words, communicators);
}

bool Ends(const ScriptStep& step) {
  return step.kind == Kind::kExit || step.kind == Kind::kThrow || step.kind == Kind::kHang;
}

struct Call {
  collective::Operation operation;
  Kind kind;
  std::int64_t times;
  bool operator==(const Call&) const = default;
};

// What a rank calls on the communicator before its list ends, of the operations that count.
std::vector<Call> CallsOf(const std::vector<ScriptStep>& steps, std::size_t communicator,
                          auto counts) {
  std::vector<Call> calls;
  for (const ScriptStep& step : steps) {
    if (step.kind == Kind::kFinish) break;
    const bool calls_it =
        step.kind == Kind::kCollective || step.kind == Kind::kChurn || step.kind == Kind::kSplit;
    if (calls_it && step.communicator == communicator && counts(step.operation)) {
      calls.push_back({step.operation, step.kind, step.times});
    }
  }
  return calls;
}

std::vector<Call> CollectivesOn(const std::vector<ScriptStep>& steps, std::size_t communicator) {
  return CallsOf(steps, communicator, [](const collective::Operation& operation) {
    return !collective::IsMessage(operation.collective);
  });
}

// Of a rank of the program, sends to `peer` or receives from it.
std::vector<Call> MessagesWith(const std::vector<ScriptStep>& steps, std::size_t communicator,
                               collective::Collective direction, int peer) {
  return CallsOf(steps, communicator, [&](const collective::Operation& operation) {
    return operation.collective == direction && operation.root == peer;
  });
}

}  // namespace

Result<ScriptStep> ParseStep(std::string_view text,
                             const std::vector<ScriptCommunicator>& communicators) {
  return ParseWords(Split(text), communicators);
}

bool PromisesRightData(const ScriptProgram& program, std::size_t communicator) {
  const std::vector<int>& members = program.communicators[communicator].members;
  const auto& first = program.steps[static_cast<std::size_t>(members.front())];
  const std::vector<Call> calls = CollectivesOn(first, communicator);
  return std::ranges::all_of(members, [&](int rank) {
    const auto& steps = program.steps[static_cast<std::size_t>(rank)];
    return std::ranges::none_of(steps, Ends) && CollectivesOn(steps, communicator) == calls;
  });
}

bool PromisesRightMessages(const ScriptProgram& program, std::size_t communicator, int from,
                           int to) {
  const std::vector<int>& members = program.communicators[communicator].members;
  const auto steps_of = [&](int place) -> const std::vector<ScriptStep>& {
    return program.steps[static_cast<std::size_t>(members[static_cast<std::size_t>(place)])];
  };
  if (std::ranges::any_of(steps_of(from), Ends) || std::ranges::any_of(steps_of(to), Ends))
    return false;
  const auto sent = MessagesWith(steps_of(from), communicator, collective::Collective::kSend, to);
  const auto received =
      MessagesWith(steps_of(to), communicator, collective::Collective::kRecv, from);
  return std::ranges::equal(sent, received, [](const Call& a, const Call& b) {
    return a.operation.type == b.operation.type && a.operation.count == b.operation.count &&
           a.times == b.times;
  });
}

bool UsesStreams(const ScriptProgram& program) {
  return std::ranges::any_of(program.steps, [](const auto& steps) {
    return std::ranges::any_of(steps, [](const ScriptStep& step) { return !step.stream.empty(); });
  });
}

std::vector<ScriptCommunicator> MadeCommunicators(const ScriptProgram& program) {
  std::vector<ScriptCommunicator> made;
  for (std::size_t rank = 0; rank < program.creation.size(); ++rank) {
    const std::vector<std::size_t>& order = program.creation[rank];
    made.resize(std::max(made.size(), order.size()));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const ScriptCommunicator& meant = program.communicators[order[i]];
      const bool member =
          std::binary_search(meant.members.begin(), meant.members.end(), static_cast<int>(rank));
      if (!member) continue;
      made[i].members.push_back(static_cast<int>(rank));
      if (made[i].name.find(meant.name) != std::string::npos) continue;
      made[i].name += (made[i].name.empty() ? "" : " or ") + meant.name;
    }
  }
  return made;
}

bool HasOneRound(const ScriptProgram& program, int rank) {
  return std::ranges::any_of(
      program.steps[static_cast<std::size_t>(rank)],
      [](const ScriptStep& step) { return step.kind == Kind::kFinish || Ends(step); });
}

std::int64_t CollectivesOf(const ScriptProgram& program, int rank) {
  std::int64_t collectives = 0;
  for (const ScriptStep& step : program.steps[static_cast<std::size_t>(rank)]) {
    if (step.kind == Kind::kFinish || Ends(step)) break;
    if (step.kind == Kind::kCollective || step.kind == Kind::kChurn) collectives += step.times;
  }
  return HasOneRound(program, rank) ? collectives : collectives * program.rounds;
}

}  // namespace lockstep::stress::scenario
