// A follower's events wait here until the judge takes them. A round is over when all followers
// answered it; a connection keeps its order, so all that they had seen has come by then. A follower
// that is lost without a last word leaves its ranks unknown: nothing that concerns them is proved
// any more.
#include "watch/run/followers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/print_stderr.h"
#include "core/control/machine.h"
#include "core/control/rendezvous/master.h"
#include "core/control/tcp.h"

namespace lockstep::watch::run {
namespace {

constexpr double kAnswerSeconds = 15;
constexpr double kByeSeconds = 0.2;
constexpr std::int64_t kSilentNs = 10'000'000'000;

}  // namespace

struct Followers::Seen {
  std::deque<events::Event> events;
  std::uint64_t taken = 0;
  ProcessFacts facts;
  bool Append(const std::string& bytes);  // of events
};

// A process whose events come from its own watcher.
class Followers::Remote : public Process {
 public:
  Remote(Followers& all, Follower& follower, std::uint32_t number, ProcessName name,
         std::shared_ptr<Seen> seen)
      : Process(std::move(name), follower.host),
        all_(all),
        follower_(follower),
        number_(number),
        seen_(std::move(seen)) {}

  std::uint64_t Drain(std::uint64_t most, const Take& take) override {
    const std::uint64_t before = seen_->taken;
    // To take one may ask for a line, and more events come meanwhile.
    for (; most > 0 && !seen_->events.empty(); --most) {
      const events::Event event = seen_->events.front();
      seen_->events.pop_front();
      seen_->taken += events::HasLeft(event.phase) ? 2 : 1;
      take({&event, 1});
    }
    return seen_->taken - before;
  }
  std::uint64_t read() const override { return seen_->taken; }

  ProcessFacts Look(bool over) override {
    if (over && seen_->facts.state != ProcessState::kUnknown) {
      seen_->facts.state = ProcessState::kGone;
    }
    return seen_->facts;
  }

  std::string Line(std::uint64_t site) override {
    const auto known = lines_.find(site);
    if (known != lines_.end()) return known->second;
    const auto answer =
        all_.Ask(follower_, {.process = number_, .about = About::kSite, .site = site});
    if (!answer) return site == 0 ? "" : "?";
    if (site != 0) lines_[site] = answer->line;
    return answer->line;
  }

  stacks::PythonStack Python() override {
    const auto answer = all_.Ask(follower_, {.process = number_, .about = About::kPython});
    return answer ? stacks::PythonStack{answer->line, answer->in_torch} : stacks::PythonStack{};
  }

  std::string Stacks() override {
    const auto answer = all_.Ask(follower_, {.process = number_, .about = About::kStacks});
    return answer ? answer->line : "no stack: its watcher does not answer";
  }

  // Its watcher does so when it is told to end all.
  void Kill() override {}

 private:
  Followers& all_;
  Follower& follower_;
  std::uint32_t number_;
  std::shared_ptr<Seen> seen_;
  std::map<std::uint64_t, std::string> lines_;
};

Followers::~Followers() = default;

Result<std::unique_ptr<Followers>> Followers::Listen(const Launch& launch,
                                                     control::Signals& signals) {
  using control::rendezvous::JoinServer;
  const int others = launch.context.size - 1;
  std::unique_ptr<Followers> result(new Followers(launch.context.size, signals));
  if (launch.way == Launch::Way::kMasterAddress) {
    LOCKSTEP_ASSIGN_OR_RETURN(result->server_,
                              control::rendezvous::ListenAtMaster(control::rendezvous::kWatchers,
                                                                  launch.endpoint, others));
    return result;
  }
  const bool one_host = launch.way == Launch::Way::kOneHost;
  std::string address = "@";
  if (!one_host) {
    LOCKSTEP_ASSIGN_OR_RETURN(address, control::ListenAddress(launch.context));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(result->server_, JoinServer::Listen(address, others));
  if (one_host) {
    LOCKSTEP_ASSIGN_OR_RETURN(result->endpoints_, control::rendezvous::EndpointServer::Open(
                                                      launch.context, result->endpoint()));
  }
  return result;
}

void Followers::AddTo(std::vector<pollfd>& items) const {
  if (!AllJoined()) {
    server_->AddTo(items);
    if (endpoints_) items.push_back({endpoints_->fd(), POLLIN, 0});
  }
  for (const auto& [rank, follower] : all_) {
    if (!follower->over()) {
      items.push_back({follower->channel.fd(), follower->channel.poll_events(), 0});
    }
  }
}

void Followers::Serve() {
  if (!AllJoined()) {
    if (endpoints_) (void)endpoints_->Serve();
    (void)server_->Serve();
    for (auto& request : server_->GatherSome(signals_, Deadline::AfterSeconds(0), 1, 0)) {
      const int rank = request.info.rank;
      if (all_.count(rank) > 0) continue;
      all_[rank] = std::make_unique<Follower>(std::move(request));
    }
  }
  for (const auto& [rank, follower] : all_) Hear(*follower);
}

void Followers::Hear(Follower& follower) {
  if (follower.over()) return;
  follower.channel.Flush();
  follower.channel.Fill();
  while (const std::optional<control::Frame> frame = follower.channel.Take()) {
    if (Understand(follower, *frame)) continue;
    follower.channel.Close(EPROTO);
    break;
  }
  if (!follower.channel.open()) Lost(follower);
}

bool Followers::Begin(Follower& follower, const control::Frame& frame) {
  const auto told = control::Decode<ProcessFrame>(frame.payload);
  if (!told || told->name.rank < 0 || told->name.rank >= told->name.size) return false;
  std::shared_ptr<Seen>& seen = follower.processes[told->process];
  if (seen) return false;
  seen = std::make_shared<Seen>();
  fresh_.push_back(std::make_unique<Remote>(*this, follower, told->process, told->name, seen));
  return true;
}

bool Followers::Seen::Append(const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(events::Event)) {
    events::Event event;
    std::memcpy(&event, bytes.data() + at, sizeof event);
    if (event.call >= events::Call::kCount || event.phase > events::Phase::kDoneLeft ||
        event.object > events::Object::kFile) {
      return false;
    }
    events.push_back(event);
  }
  return true;
}

bool Followers::Continue(Follower& follower, const control::Frame& frame) {
  const auto events = control::Decode<EventsFrame>(frame.payload);
  const auto facts = control::Decode<FactsFrame>(frame.payload);
  const bool of_events = frame.type == kEvents;
  if (of_events ? !events : !facts) return false;
  const auto process = follower.processes.find(of_events ? events->process : facts->process);
  if (process == follower.processes.end()) return false;
  if (of_events) return process->second->Append(events->bytes);
  process->second->facts = facts->facts;
  return true;
}

bool Followers::Understand(Follower& follower, const control::Frame& frame) {
  if (frame.type == kProcess) return Begin(follower, frame);
  if (frame.type == kEvents || frame.type == kFacts) return Continue(follower, frame);
  if (frame.type == kRoundDone) {
    const auto told = control::Decode<RoundReport>(frame.payload);
    if (told) follower.round = told->round;
    return told.has_value();
  }
  if (frame.type == kAreYouThere) {
    follower.channel.Send(kHere, {});
    return true;
  }
  if (frame.type == kAnswer) {
    follower.answer = control::Decode<AnswerFrame>(frame.payload);
    return follower.answer.has_value();
  }
  const auto end = control::Decode<EndFrame>(frame.payload);
  if (frame.type != kEnd || !end) return false;
  follower.code = end->code;
  return true;
}

void Followers::Say(const Follower& follower, const char* what) const {
  PrintStderr("lockstep watch: the watcher of rank {} (host {}) {}\n", follower.rank, follower.host,
              what);
}

// What it told last of its ranks is all that is known.
void Followers::Lost(Follower& follower) {
  follower.lost = true;
  if (follower.code) return;  // it had told all
  for (const auto& [number, seen] : follower.processes) {
    seen->facts.state = ProcessState::kUnknown;
  }
  const bool told_to_end = std::ranges::any_of(
      follower.processes, [](const auto& each) { return each.second->facts.told_to_end; });
  if (!told_to_end) Say(follower, "is gone: nothing that follows is judged");
}

std::vector<std::unique_ptr<Process>> Followers::TakeNew() { return std::exchange(fresh_, {}); }

void Followers::StartRound() {
  ++round_;
  in_round_ = true;
  round_began_ns_ = MonotonicNs();
  for (const auto& [rank, follower] : all_) {
    if (!follower->over()) follower->channel.Send(RoundOrder{round_});
  }
}

bool Followers::EndRound() {
  for (const auto& [rank, follower] : all_) {
    if (follower->over() || follower->round == round_) continue;
    if (MonotonicNs() - round_began_ns_ > kSilentNs && !std::exchange(said_silent_, true)) {
      Say(*follower, "does not answer: nothing is proved without it");
    }
    return false;
  }
  in_round_ = false;
  return true;
}

bool Followers::AllEnded() const {
  return std::ranges::all_of(
      all_, [](const auto& each) { return each.second->over() || each.second->code.has_value(); });
}

bool Followers::AnyLost() const {
  return std::ranges::any_of(
      all_, [](const auto& each) { return each.second->lost && !each.second->code.has_value(); });
}

std::vector<std::pair<int, int>> Followers::Ended() const {
  std::vector<std::pair<int, int>> ended;
  for (const auto& [rank, follower] : all_) {
    if (!follower->over() && follower->code) ended.emplace_back(rank, *follower->code);
  }
  return ended;
}

void Followers::Dismiss(int rank) {
  Follower& follower = *all_.at(rank);
  if (follower.over()) return;
  follower.channel.Send(kDismiss, {});
  follower.channel.FlushUntil(Deadline::AfterSeconds(kByeSeconds));
  follower.dismissed = true;
}

void Followers::DismissAll() {
  for (const auto& [rank, follower] : all_) Dismiss(rank);
}

void Followers::Kill() {
  for (const auto& [rank, follower] : all_) {
    if (!follower->over()) follower->channel.Send(kKill, {});
  }
}

std::vector<int> Followers::AskForDumps() {
  dumps_of_.clear();
  std::vector<int> asked;
  for (const auto& [rank, follower] : all_) {
    const auto answer = Ask(*follower, {.about = About::kAskForDumps});
    if (!answer) continue;
    for (const int each : answer->ranks) {
      asked.push_back(each);
      dumps_of_[each] = follower.get();
    }
  }
  return asked;
}

std::vector<WrittenDump> Followers::Dumps() {
  std::vector<WrittenDump> dumps;
  for (const auto& [rank, follower] : dumps_of_) {
    auto answer = Ask(*follower, {.about = About::kDump, .rank = rank});
    if (answer && !answer->line.empty()) dumps.push_back({rank, std::move(answer->line)});
  }
  return dumps;
}

// Waits, while the program is stuck or has done wrong: it is not held up by that.
std::optional<AnswerFrame> Followers::Ask(Follower& follower, AskFrame question) {
  if (follower.over()) return std::nullopt;
  question.question = ++questions_;
  follower.channel.Send(question);
  const Deadline deadline = Deadline::AfterSeconds(kAnswerSeconds);
  while (!follower.answer || follower.answer->question != question.question) {
    if (follower.over() || deadline.Passed()) return std::nullopt;
    pollfd item = {follower.channel.fd(), follower.channel.poll_events(), 0};
    poll(&item, 1, deadline.RemainingMs());
    Hear(follower);
  }
  return follower.answer;
}

}  // namespace lockstep::watch::run
