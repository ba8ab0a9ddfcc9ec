// Draws a program and an error of one rank. The calls of a rank follow from its steps. Where it
// awaits its requests follows from the seed and the step's number, so a smaller program does alike.
#include "watch/fuzz/program.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/base/random.h"

namespace lockstep::watch::fuzz {
namespace {

constexpr int kMostRanks = 5;
constexpr std::uint64_t kMostSteps = 10;
constexpr int kExtraTag = 900;
constexpr int kWrongTagBy = 500;
constexpr int kGatherTag = 100;

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(Mix64(seed)) { program_.seed = seed; }

  Program Draw() {
    program_.ranks = 2 + Below(kMostRanks - 1);
    DrawComms();
    const std::uint64_t steps = 1 + random_.Below(kMostSteps);
    while (program_.steps.size() < steps) DrawStep();
    program_.lax = OneIn(2);
    program_.buffered = Below(5);
    program_.completions = Below(9);
    DrawError();
    return std::move(program_);
  }

 private:
  int Below(int bound) {
    return static_cast<int>(random_.Below(static_cast<std::uint64_t>(bound)));
  }
  bool OneIn(int n) { return Below(n) == 0; }

  void DrawComms() {
    std::vector<int> all(static_cast<std::size_t>(program_.ranks));
    std::iota(all.begin(), all.end(), 0);
    program_.comms = {all, all};
    for (int others = Below(3); others > 0; --others) {
      random_.Shuffle(all);
      const int size = 2 + Below(program_.ranks - 1);
      std::vector<int> members(all.begin(), all.begin() + size);
      std::sort(members.begin(), members.end());
      program_.comms.push_back(std::move(members));
    }
  }

  void DrawStep() {
    constexpr Call kSends[] = {Call::kSend,  Call::kSend,   Call::kSsend, Call::kBsend,
                               Call::kIsend, Call::kIssend, Call::kIsend};
    constexpr Call kReceives[] = {Call::kRecv, Call::kRecv, Call::kIrecv, Call::kIrecv,
                                  Call::kProbe};
    constexpr Call kCollectives[] = {Call::kBarrier,   Call::kAllreduce, Call::kBcast,
                                     Call::kReduce,    Call::kScan,      Call::kIbarrier,
                                     Call::kIallreduce};
    Step step;
    step.number = program_.steps.size();
    if (!OneIn(2))
      step.comm = static_cast<std::size_t>(Below(static_cast<int>(program_.comms.size())));
    std::vector<int> members = program_.comms[step.comm];
    const int kind = Below(10);
    if (kind == 0) {
      step.kind = Step::Kind::kCollective;
      step.collective = kCollectives[Below(std::size(kCollectives))];
      step.root = Below(static_cast<int>(members.size()));
      program_.steps.push_back(std::move(step));
      return;
    }
    random_.Shuffle(members);
    step.to = members.back();
    members.pop_back();
    step.kind = kind == 1   ? Step::Kind::kExchange
                : kind == 2 ? Step::Kind::kGather
                            : Step::Kind::kMessage;
    if (step.kind != Step::Kind::kGather) members.resize(1);
    step.from = std::move(members);
    step.tag = Below(3);
    step.send = kSends[Below(std::size(kSends))];
    step.receive = kReceives[Below(std::size(kReceives))];
    step.any_tag = OneIn(4);
    step.any_source =
        step.kind == Step::Kind::kGather || (step.kind == Step::Kind::kMessage && OneIn(4));
    if (step.any_source) {
      // Nothing else may fit it.
      step.any_tag = false;
      step.tag = kGatherTag + static_cast<int>(step.number);
    }
    program_.steps.push_back(std::move(step));
  }

  void DrawError() {
    if (OneIn(4)) return;
    const Error error = static_cast<Error>(Below(kErrors));
    program_.at = random_.Below(program_.steps.size());
    const Step& step = program_.steps[program_.at];
    std::vector<int> parts;
    for (int rank = 0; rank < program_.ranks; ++rank) {
      if (TakesPart(program_, step, rank)) parts.push_back(rank);
    }
    program_.faulty = parts[random_.Below(parts.size())];
    program_.other = (program_.faulty + 1 + Below(program_.ranks - 1)) % program_.ranks;
    program_.error = error;
  }

  Random random_;
  Program program_;
};

// Writes down the calls of one rank.
class Calls {
 public:
  Calls(const Program& program, int rank) : program_(program), rank_(rank) {}

  std::vector<Action> All() {
    for (const std::size_t index : Order()) {
      const Step& step = program_.steps[index];
      erring_ = rank_ == program_.faulty && index == program_.at ? program_.error : Error::kNone;
      line_ = 10 * static_cast<int>(step.number) + 10;
      if (erring_ == Error::kDies) {
        actions_.emplace_back().dies = true;
        return std::move(actions_);
      }
      Extra();
      if (erring_ != Error::kSkip) Take(step);
      line_ += 5;
      Complete(Mix64(program_.seed ^ step.number << 8 ^ static_cast<std::uint64_t>(rank_) << 40));
    }
    line_ = 10 * 100;
    Await(Call::kWaitall, pending_);
    Add(Call::kFinalize);
    return std::move(actions_);
  }

 private:
  // Of steps that the rank takes part in.
  std::vector<std::size_t> Order() const {
    std::vector<std::size_t> order;
    for (std::size_t index = 0; index < program_.steps.size(); ++index) {
      if (TakesPart(program_, program_.steps[index], rank_)) order.push_back(index);
    }
    if (program_.error != Error::kSwap || rank_ != program_.faulty) return order;
    const auto at = std::find(order.begin(), order.end(), program_.at);
    if (at != order.end() && at + 1 != order.end()) std::iter_swap(at, at + 1);
    return order;
  }

  Action& Add(Call call) {
    Action& action = actions_.emplace_back();
    action.call = call;
    action.line = line_;
    return action;
  }

  void Extra() {
    if (erring_ != Error::kExtraSend && erring_ != Error::kExtraReceive) return;
    Action& action = Add(erring_ == Error::kExtraSend ? Call::kSend : Call::kRecv);
    action.line = line_ + 4;
    action.peer = program_.other;
    action.tag = kExtraTag;
    action.type = kType;
  }

  void Take(const Step& step) {
    if (step.kind == Step::Kind::kCollective) {
      Collective(step);
    } else if (step.kind == Step::Kind::kExchange) {
      Message(step, Call::kSendrecv, rank_ == step.to ? step.from[0] : step.to);
    } else if (rank_ != step.to) {
      Message(step, step.send, step.to);
    } else {
      for (std::size_t each = 0; each < step.from.size(); ++each) Receive(step);
    }
  }

  void Receive(const Step& step) {
    if (step.receive == Call::kProbe && step.any_source) return Message(step, Call::kRecv, kAny);
    const int source = step.any_source ? kAny : step.from[0];
    if (step.receive == Call::kProbe) {
      Message(step, Call::kProbe, source);
      return Message(step, Call::kRecv, source);
    }
    Message(step, step.receive, source);
  }

  // What the rank does wrong here is in its call.
  void Message(const Step& step, Call call, int peer) {
    const bool receives = call == Call::kRecv || call == Call::kIrecv || call == Call::kProbe;
    Action& action = Add(call);
    action.comm = step.comm;
    action.peer = peer;
    action.tag = receives && step.any_tag ? kAny : step.tag;
    action.type = kType;
    action.count = receives || call == Call::kSendrecv ? 4 : 1 + step.tag % 4;
    Spoil(receives, action);
    if (events::FactsOf(call).call_class != events::Class::kPostSend && call != Call::kIrecv)
      return;
    Post(action);
  }

  void Spoil(bool receives, Action& action) const {
    switch (erring_) {
      case Error::kWrongTag:
        action.tag = (action.tag == kAny ? 0 : action.tag) + kWrongTagBy;
        break;
      case Error::kWrongComm:
        action.comm = action.comm == 0 ? 1 : 0;
        break;
      case Error::kWrongPeer:
        if (MemberOf(program_, action.comm, program_.other) >= 0) action.peer = program_.other;
        break;
      case Error::kWild:
        if (receives) action.peer = action.tag = kAny;
        break;
      case Error::kTooLong:
        if (!receives) action.count = 9;
        break;
      case Error::kWrongType:
        action.type = kOtherType;
        break;
      default:
        break;
    }
  }

  void Collective(const Step& step) {
    Action& action = Add(step.collective);
    action.comm = step.comm;
    action.type = kType;
    action.root = step.root;
    const auto size = static_cast<int>(program_.comms[step.comm].size());
    if (erring_ == Error::kWrongCall) {
      action.call = step.collective == Call::kBarrier ? Call::kAllreduce : Call::kBarrier;
    }
    if (erring_ == Error::kWrongRoot) action.root = (step.root + 1) % size;
    if (erring_ == Error::kWrongType) action.type = kOtherType;
    if (events::FactsOf(action.call).call_class == events::Class::kPostCollective) Post(action);
  }

  void Post(Action& action) {
    action.request = ++last_request_;
    if (erring_ != Error::kNoWait) pending_.push_back(action.request);
  }

  // Awaits some of its requests, or none.
  void Complete(std::uint64_t seed) {
    constexpr Call kHow[] = {Call::kWait,     Call::kWaitall, Call::kWaitany,
                             Call::kWaitsome, Call::kTest,    Call::kTestall};
    Random random(seed);
    if (static_cast<int>(random.Below(8)) >= program_.completions) return;
    std::vector<std::uint32_t> some, left;
    for (const std::uint32_t request : pending_) {
      (random.Below(3) > 0 ? some : left).push_back(request);
    }
    random.Shuffle(some);
    pending_ = std::move(left);
    const Call how = kHow[random.Below(std::size(kHow))];
    if (how == Call::kWait || how == Call::kTest) {
      for (const std::uint32_t request : some) Await(how, {request});
    } else {
      Await(how, some);
    }
  }

  void Await(Call how, const std::vector<std::uint32_t>& requests) {
    if (!requests.empty()) Add(how).requests = requests;
  }

  static constexpr std::uint32_t kType = 1 << 8 | 4;
  static constexpr std::uint32_t kOtherType = 3 << 8 | 4;
  const Program& program_;
  int rank_;
  Error erring_ = Error::kNone;
  int line_ = 0;
  std::uint32_t last_request_ = 0;
  std::vector<std::uint32_t> pending_;
  std::vector<Action> actions_;
};

std::string Number(int number) { return number == kAny ? "any" : std::to_string(number); }

std::string Describe(const Program& program, const Action& action) {
  if (action.dies) return "dies";
  std::string text = events::FactsOf(action.call).name;
  const events::Class kind = events::FactsOf(action.call).call_class;
  for (const std::uint32_t request : action.requests) text += " " + std::to_string(request);
  if (!action.requests.empty() || kind == events::Class::kFinalize) return text;
  text += " on c" + std::to_string(action.comm);
  if (events::FactsOf(action.call).sync != events::Sync::kNone) {
    const auto member = static_cast<std::size_t>(action.root);
    text += ", root rank " + std::to_string(program.comms[action.comm][member]);
  } else {
    text += ", rank " + Number(action.peer) + ", tag " + Number(action.tag) + ", count " +
            std::to_string(action.count);
  }
  if (action.request != 0) text += ", request " + std::to_string(action.request);
  return text;
}

}  // namespace

std::string_view NameOf(Error error) {
  constexpr std::string_view kNames[] = {
      "none",       "skip",       "swap",       "wrong tag",     "wrong communicator",
      "wrong peer", "wild",       "extra send", "extra receive", "no wait",
      "too long",   "wrong type", "wrong call", "wrong root",    "dies"};
  static_assert(std::size(kNames) == kErrors);
  return kNames[static_cast<std::size_t>(error)];
}

Program DrawProgram(std::uint64_t seed) { return Drawing(seed).Draw(); }

int MemberOf(const Program& program, std::size_t comm, int rank) {
  const std::vector<int>& members = program.comms[comm];
  const auto found = std::find(members.begin(), members.end(), rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

bool TakesPart(const Program& program, const Step& step, int rank) {
  if (step.kind == Step::Kind::kCollective) return MemberOf(program, step.comm, rank) >= 0;
  return rank == step.to || std::find(step.from.begin(), step.from.end(), rank) != step.from.end();
}

std::vector<Action> ActionsOf(const Program& program, int rank) {
  return Calls(program, rank).All();
}

std::string Describe(const Program& program) {
  std::string text;
  for (std::size_t comm = 0; comm < program.comms.size(); ++comm) {
    text += "c" + std::to_string(comm) + ": ranks";
    for (const int member : program.comms[comm]) text += " " + std::to_string(member);
    text += "\n";
  }
  text += "error: " + std::string(NameOf(program.error));
  if (program.error != Error::kNone) text += " of rank " + std::to_string(program.faulty);
  text += "\n";
  for (int rank = 0; rank < program.ranks; ++rank) {
    text += "rank " + std::to_string(rank) + "\n";
    for (const Action& action : ActionsOf(program, rank)) {
      text += "  line " + std::to_string(action.line) + ": " + Describe(program, action) + "\n";
    }
  }
  return text;
}

}  // namespace lockstep::watch::fuzz
