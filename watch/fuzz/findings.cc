// What is expected follows from the library's messages, receives and requests, line by line. A
// finding that nothing explains is as wrong as one that is missing.
#include "watch/fuzz/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace lockstep::watch::fuzz {
namespace {

using judge::Cause;
using judge::Finding;

bool Says(const Finding& finding, int line) {
  const std::string where = fmt::format("line {}", line);
  const std::size_t at = finding.text.find(where);
  if (at == std::string::npos) return false;
  const std::size_t after = at + where.size();
  return after == finding.text.size() || finding.text[after] < '0' || finding.text[after] > '9';
}

bool Blames(const Finding& finding, int rank) {
  return std::ranges::count(finding.culprits, rank) > 0;
}

// The findings of one program against what happened in it.
class Findings {
 public:
  Findings(const Program& program, const Library& library, const std::vector<Finding>& findings)
      : program_(program), library_(library), findings_(findings) {}

  std::string Wrong() {
    Expect();
    for (const Finding& finding : findings_) {
      const std::string wrong = WrongAbout(finding);
      if (!wrong.empty())
        return fmt::format("{} ({}: {})", wrong, NameOf(finding.cause), finding.text);
    }
    for (const auto& [what, told] : expected_) {
      if (!told) return fmt::format("missed: no {} of line {}", NameOf(what.first), what.second);
    }
    return {};
  }

 private:
  // A line may stand for several ranks: it is told once.
  void Expect() {
    bool over = true;
    for (int rank = 0; rank < program_.ranks; ++rank) over = over && library_.finished(rank);
    for (const Sent& message : library_.sent()) {
      if (over && message.receive < 0)
        Add(Cause::kLostMessage, message.action.line, {message.source});
    }
    for (const auto& [rank, action] : library_.Unawaited()) {
      Add(Cause::kUnfinishedRequest, action.line, {rank});
    }
    std::map<int, std::set<int>> sources;
    for (const Posted& receive : library_.posted()) {
      if (!receive.known) continue;
      const Sent& message = library_.sent()[static_cast<std::size_t>(receive.message)];
      const std::set<int> both = {message.source, receive.rank};
      if (message.action.type != receive.action.type) {
        Add(Cause::kDatatypeMismatch, receive.action.line, both);
      } else if (message.action.count > RoomOf(receive.action)) {
        Add(Cause::kTruncation, receive.action.line, both);
      }
      if (receive.action.peer != kAny || !AsksForRaces(program_)) continue;
      std::set<int>& of_line = sources[receive.action.line];
      of_line.insert(message.source);
      if (of_line.size() == 2) Add(Cause::kMessageRace, receive.action.line, {receive.rank});
    }
    AllowRaces();
  }

  // Between messages of several places: they may be told.
  void AllowRaces() {
    for (const Posted& receive : library_.posted()) {
      if (!library_.Raced(receive)) continue;
      const std::pair race{Cause::kMessageRace, receive.action.line};
      expected_.try_emplace(race, true);
      culprits_[race].insert({receive.rank});
    }
  }

  void Add(Cause cause, int line, const std::set<int>& culprits) {
    expected_.try_emplace({cause, line}, false);
    culprits_[{cause, line}].insert(culprits);
  }

  std::string WrongAbout(const Finding& finding) {
    switch (finding.cause) {
      case Cause::kLostMessage:
      case Cause::kUnfinishedRequest:
      case Cause::kTruncation:
      case Cause::kMessageRace:
        return WrongAboutLine(finding);
      case Cause::kDatatypeMismatch:
        return OfCollective() ? WrongAboutCalls(finding) : WrongAboutLine(finding);
      case Cause::kLostRank:
        return library_.died(program_.faulty) &&
                       finding.culprits == std::vector<int>{program_.faulty}
                   ? ""
                   : "innocent: it did not die";
      case Cause::kDeadlock:
      case Cause::kTagMismatch:
        return WrongAboutHang(finding);
      case Cause::kCommunicatorMismatch:
        return finding.hangs ? WrongAboutHang(finding) : WrongAboutCalls(finding);
      default:
        return WrongAboutCalls(finding);
    }
  }

  bool OfCollective() const {
    return program_.error != Error::kNone &&
           program_.steps[program_.at].kind == Step::Kind::kCollective;
  }

  std::string WrongAboutLine(const Finding& finding) {
    const std::set<int> culprits(finding.culprits.begin(), finding.culprits.end());
    for (auto& [what, told] : expected_) {
      if (what.first != finding.cause || !Says(finding, what.second)) continue;
      if (!culprits_[what].contains(culprits)) return "innocent: of another rank";
      told = true;
      return {};
    }
    return "untrue: nothing of this kind happened there";
  }

  std::string WrongAboutCalls(const Finding& finding) const {
    if (program_.error == Error::kNone) return "false alarm: the program has no error";
    return Blames(finding, program_.faulty) ? "" : "innocent: the rank that errs is another";
  }

  // Its ranks wait where it says, for each other or for a rank that is over.
  std::string WrongAboutHang(const Finding& finding) const {
    const std::set<int> stuck = library_.FindStuck();
    const auto blocked = library_.FindBlocked();
    bool waits = false, wild = program_.error == Error::kWild;
    for (const int rank : finding.culprits) {
      const bool here = stuck.contains(rank);
      waits = waits || here;
      if (!here && !library_.finished(rank) && !library_.died(rank)) {
        return fmt::format("innocent: rank {} goes on", rank);
      }
      for (const RankNeed& need : here ? blocked.at(rank).needs : std::vector<RankNeed>{}) {
        wild = wild || need.any_of.size() > 1;
      }
    }
    if (!waits) return "innocent: none of its ranks waits";
    // Who of those that a wildcard could have heard of should have sent, nobody knows.
    if (!wild && !Blames(finding, program_.faulty))
      return "innocent: the rank that errs is another";
    return WrongAboutNeeds(finding, stuck);
  }

  std::string WrongAboutNeeds(const Finding& finding, const std::set<int>& stuck) const {
    const bool deadlock = finding.cause == Cause::kDeadlock;
    bool near = false;
    for (const int rank : finding.culprits) {
      const Cause cause = deadlock ? Cause::kTagMismatch : finding.cause;
      if (stuck.contains(rank)) near = near || IsNear(rank, cause, stuck);
    }
    if (finding.cause == Cause::kCommunicatorMismatch) near = near || CollectivesDiffer(finding);
    if (!deadlock) return near ? "" : "untrue: no message is there";
    if (near && !library_.HidesMatches()) return "missed: a message came with another tag";
    if (IsTooMany(finding, stuck)) return "innocent: nobody of them waits for one of its ranks";
    const int first = finding.culprits.front();
    if (!stuck.contains(first)) return {};
    const Action& action = *library_.ActionAt(first);
    return Says(finding, action.line) ? "" : fmt::format("place: rank {} waits elsewhere", first);
  }

  // Of ranks that wait for each other, each is waited for; of others, one waits for one that is
  // over.
  bool IsTooMany(const Finding& finding, const std::set<int>& stuck) const {
    std::set<int> needed;
    const auto blocked = library_.FindBlocked();
    bool circle = true;
    for (const int rank : finding.culprits) {
      circle = circle && stuck.contains(rank);
      if (!stuck.contains(rank)) continue;
      for (const RankNeed& need : blocked.at(rank).needs) {
        needed.insert(need.any_of.begin(), need.any_of.end());
      }
    }
    if (!circle) return finding.culprits.size() > 2;
    return !std::ranges::all_of(finding.culprits, [&](int rank) { return needed.contains(rank); });
  }

  // Two of its ranks wait in the same collective on two communicators.
  bool CollectivesDiffer(const Finding& finding) const {
    std::set<std::pair<Call, std::size_t>> open;
    std::set<Call> calls;
    for (const auto& [rank, wait] : library_.FindBlocked()) {
      for (const Action& action : wait.collectives) {
        if (!Blames(finding, rank)) continue;
        open.insert({action.call, action.comm});
        calls.insert(action.call);
      }
    }
    return open.size() > calls.size();
  }

  // Nobody who goes on can send it.
  bool InVain(const Posted& receive, const std::set<int>& stuck) const {
    for (const int source : program_.comms[receive.action.comm]) {
      const bool over =
          stuck.contains(source) || library_.finished(source) || library_.died(source);
      const bool meant =
          receive.action.peer == kAny ? source != receive.rank : source == receive.action.peer;
      if (meant && !over) return false;
    }
    return true;
  }

  // A receive that the rank needs has a message but for its tag (or its communicator).
  bool IsNear(int rank, Cause cause, const std::set<int>& stuck) const {
    const Library::Blocked blocked = library_.FindBlocked().at(rank);
    const auto near = [&](const Action& receive, const Sent& message) {
      const bool source = receive.peer == kAny || receive.peer == message.source;
      const bool same = message.action.comm == receive.comm;
      return message.to == rank && message.receive < 0 && source &&
             same == (cause == Cause::kTagMismatch);
    };
    for (const Sent& message : library_.sent()) {
      if (blocked.action->call == Call::kProbe && near(*blocked.action, message)) return true;
      for (const int number : blocked.receives) {
        const Posted& receive = library_.posted()[At(number)];
        if (InVain(receive, stuck) && near(receive.action, message)) return true;
      }
    }
    return false;
  }

  static std::size_t At(int index) { return static_cast<std::size_t>(index); }

  const Program& program_;
  const Library& library_;
  const std::vector<Finding>& findings_;
  using What = std::pair<Cause, int>;  // and its line
  std::map<What, bool> expected_;      // was it told?
  std::map<What, std::set<std::set<int>>> culprits_;
};

}  // namespace

std::string WrongAboutFindings(const Program& program, const Library& library,
                               const std::vector<Finding>& findings) {
  return Findings(program, library, findings).Wrong();
}

}  // namespace lockstep::watch::fuzz
