// A follower judges nothing. It sends events as they come, and facts when it is asked, when they
// change and at the end. While rank 0's watcher takes nothing, events stay in their ring. When the
// command has ended, the follower stays until rank 0's watcher needs its lines no more.
#include "watch/run/follower.h"

#include <fmt/format.h>
#include <poll.h>

#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/file_text.h"
#include "core/base/print_stderr.h"
#include "core/control/channel.h"
#include "core/control/machine.h"
#include "core/control/rendezvous/endpoint.h"
#include "core/control/rendezvous/join_server.h"
#include "core/control/tcp.h"
#include "watch/run/frames.h"

namespace lockstep::watch::run {
namespace {

constexpr int kFollowerLookMs = 20;  // an order wakes it at once
constexpr std::uint64_t kEventsOfFrame = 4096;
constexpr double kMeetSeconds = 60;           // after its program has begun
constexpr double kJoinSeconds = 3;            // of one try
constexpr double kFollowerHurrySeconds = 10;  // after its program has ended
constexpr double kToldSeconds = 0.5;          // after the launcher told it to end
constexpr int kAskMs = 5000;                  // whether rank 0's watcher is there
constexpr int kMostUnanswered = 6;            // counted: no time in which this one was stopped

constexpr char kNotFound[] =
    "the watcher of rank 0 was not found; start all ranks with lockstep watch";

class Follower {
 public:
  Follower(const Launch& launch, Folder& folder, Command& command, control::Signals& signals,
           Flight& flight)
      : launch_(launch), folder_(folder), command_(command), signals_(signals), flight_(flight) {}

  int Run();

 private:
  struct Mine {
    std::unique_ptr<LocalProcess> process;
    bool announced = false;
    ProcessFacts told = {};
    int strange = 0;
  };
  void Meet();
  std::optional<control::rendezvous::Endpoint> FindEndpoint();
  void GiveUp(const std::string& why);
  // Sends what is new, and facts where they changed, or of all. `over`: the command has ended.
  void Tell(bool all, bool over);
  bool TellEvents(std::uint32_t number, LocalProcess& process);
  void Hear();
  void Obey(const control::Frame& frame);
  void Answer(const AskFrame& question);
  void AskWhetherThere();
  // After the command's end: whether rank 0's watcher is there, and what is left to tell.
  bool MeetLate();
  void Stay();
  void Serve();
  // SIGKILL may follow.
  void Leave() const {
    folder_.Remove();
    flight_.Remove();
  }
  bool Telling() const { return channel_ && channel_->open() && !dismissed_; }

  const Launch& launch_;
  Folder& folder_;
  Command& command_;
  control::Signals& signals_;
  Flight& flight_;
  std::vector<Mine> mine_;  // by their number
  std::optional<control::Channel> channel_;
  std::optional<Deadline> meet_by_;
  bool gave_up_ = false;
  bool all_told_ = false;
  bool dismissed_ = false;
  bool killed_ = false;
  int unanswered_ = 0;
};

void Follower::GiveUp(const std::string& why) {
  gave_up_ = true;
  PrintStderr("lockstep watch: rank {} (host {}) is not watched{}: {}\n", launch_.context.rank,
              control::HostName(), channel_ ? " any more" : "", why);
}

std::optional<control::rendezvous::Endpoint> Follower::FindEndpoint() {
  if (launch_.way == Launch::Way::kMasterAddress) return launch_.endpoint;
  if (launch_.way == Launch::Way::kOneHost) {
    const auto found =
        control::rendezvous::FindEndpoint(launch_.context, signals_, Deadline::AfterSeconds(0));
    return found.ok() ? std::optional(*found) : std::nullopt;
  }
  return control::Decode<control::rendezvous::Endpoint>(
      TextOf(folder_.path() / events::kEndpointFile));
}

void Follower::Meet() {
  if (channel_ || gave_up_) return;
  if (!mine_.empty() && !meet_by_) meet_by_ = Deadline::AfterSeconds(kMeetSeconds);
  const bool late = meet_by_ && meet_by_->Passed();
  const std::optional<control::rendezvous::Endpoint> endpoint = FindEndpoint();
  if (!endpoint) {
    if (late) GiveUp(kNotFound);
    return;
  }
  Result<control::Channel> channel =
      control::rendezvous::Join(*endpoint, control::DescribeAgent(launch_.context.rank), nullptr,
                                Deadline::AfterSeconds(kJoinSeconds));
  if (channel.ok()) {
    channel_.emplace(std::move(*channel));
    control::BearSlowPeer(channel_->fd());  // it may be stopped, or save a file
  } else if (late) {
    GiveUp(channel.status().message());
  }
}

bool Follower::TellEvents(std::uint32_t number, LocalProcess& process) {
  EventsFrame frame;
  frame.process = number;
  const std::uint64_t count =
      process.Drain(kEventsOfFrame, [&](std::span<const events::Event> some) {
        frame.bytes.append(reinterpret_cast<const char*>(some.data()), some.size_bytes());
      });
  if (count > 0 && Telling()) channel_->Send(frame);
  return count >= kEventsOfFrame;
}

bool Differ(const ProcessFacts& a, const ProcessFacts& b) {
  const auto odd = [](ProcessState state) { return state > ProcessState::kSleeps; };
  return (a.state != b.state && (odd(a.state) || odd(b.state))) || a.cut_off != b.cut_off ||
         a.told_to_end != b.told_to_end;
}

void Follower::Tell(bool all, bool over) {
  for (std::size_t each = 0; each < mine_.size(); ++each) {
    Mine& mine = mine_[each];
    const auto number = static_cast<std::uint32_t>(each);
    if (Telling() && !std::exchange(mine.announced, true)) {
      channel_->Send(ProcessFrame{number, mine.process->name()});
    }
    ProcessFacts facts = mine.process->Look(over);
    facts.told_to_end = command_.told_to_end();
    const bool strange = facts.state > ProcessState::kSleeps;
    mine.strange = strange ? mine.strange + 1 : 0;
    // Nobody waits here: what does not go now stays where it is.
    while ((!Telling() || !channel_->has_unsent() || over) && TellEvents(number, *mine.process)) {
    }
    const bool sure = !strange || over || mine.strange >= kStrangeLooks;
    if (!sure) facts.state = mine.told.state;
    if (!Telling() || (!all && !Differ(facts, mine.told))) continue;
    channel_->Send(FactsFrame{number, facts});
    mine.told = facts;
  }
}

void Follower::Answer(const AskFrame& question) {
  AnswerFrame answer;
  answer.question = question.question;
  if (question.about == About::kAskForDumps) {
    answer.ranks = flight_.Ask();
  } else if (question.about == About::kDump) {
    answer.line = flight_.Written(question.rank);
  } else if (question.process < mine_.size()) {
    LocalProcess& process = *mine_[question.process].process;
    if (question.about == About::kPython) {
      const stacks::PythonStack stack = process.Python();
      answer.line = stack.line;
      answer.in_torch = stack.in_torch;
    } else {
      const bool stacks = question.about == About::kStacks;
      answer.line = stacks ? process.Stacks() : process.Line(question.site);
    }
  }
  channel_->Send(answer);
}

void Follower::Obey(const control::Frame& frame) {
  const auto round = control::Decode<RoundOrder>(frame.payload);
  const auto question = control::Decode<AskFrame>(frame.payload);
  if (frame.type == kDismiss) {
    dismissed_ = true;
  } else if (frame.type == kKill) {
    killed_ = true;
    for (const Mine& mine : mine_) mine.process->Kill();
    command_.Signal(SIGKILL);
  } else if (frame.type == kRound && round) {
    Tell(true, all_told_);
    channel_->Send(RoundReport{round->round});
  } else if (frame.type == kAsk && question) {
    Answer(*question);
  }
}

void Follower::Hear() {
  if (!channel_ || dismissed_ || gave_up_) return;
  channel_->Flush();
  channel_->Fill();
  while (const std::optional<control::Frame> frame = channel_->Take()) {
    unanswered_ = 0;
    Obey(*frame);
  }
  if (channel_->open() || dismissed_) return;
  if (all_told_ || command_.told_to_end()) {
    gave_up_ = true;
  } else {
    GiveUp("the watcher of rank 0 is gone");
  }
}

void Follower::Serve() {
  for (auto& process : folder_.TakeNew()) mine_.push_back({std::move(process)});
  Meet();
  // Until they have met, events wait in their ring.
  if (!channel_ && !gave_up_) return;
  Tell(false, false);
  Hear();
}

bool Follower::MeetLate() {
  const bool told_to_end = command_.told_to_end();
  const Deadline deadline =
      Deadline::AfterSeconds(told_to_end ? kToldSeconds : kFollowerHurrySeconds);
  for (Serve(); !channel_ && !gave_up_; Serve()) {
    if (deadline.Passed()) break;
    poll(nullptr, 0, kFollowerLookMs);
  }
  if (!channel_ && !gave_up_ && !mine_.empty() && !told_to_end) GiveUp(kNotFound);
  return channel_ && !gave_up_;
}

// It may be stopped, as by a debugger.
void Follower::AskWhetherThere() {
  if (++unanswered_ <= kMostUnanswered) return channel_->Send(kAreYouThere, {});
  GiveUp(fmt::format("the watcher of rank 0 has not answered for {} s",
                     kMostUnanswered * kAskMs / 1000));
}

// The last rank of a launch may compute for hours, and its verdict may need a line of this one.
// Where this one must not keep its launcher waiting, rank 0's watcher dismisses it before.
void Follower::Stay() {
  if (!MeetLate()) return;
  Tell(true, true);
  channel_->Send(EndFrame{command_.ExitCode()});
  all_told_ = true;
  bool told_to_end = command_.told_to_end();
  const int most_ms = told_to_end ? static_cast<int>(kToldSeconds * 1e3) : kAskMs;
  while (Telling() && !gave_up_) {
    std::vector<pollfd> items = {{channel_->fd(), channel_->poll_events(), 0},
                                 {signals_.fd(), POLLIN, 0}};
    const bool heard = poll(items.data(), items.size(), most_ms) != 0;
    Hear();
    if (told_to_end) break;
    if (!heard && Telling()) AskWhetherThere();
    told_to_end = signals_.Take().end != 0;
  }
}

int Follower::Run() {
  while (true) {
    std::vector<pollfd> items;
    if (channel_ && channel_->open()) items.push_back({channel_->fd(), channel_->poll_events(), 0});
    if (command_.Await(kFollowerLookMs, std::move(items), signals_)) break;
    if (command_.told_to_end()) Leave();
    command_.PassOn();
    Serve();
  }
  if (command_.told_to_end()) Leave();
  command_.ExitCode();
  Stay();
  return killed_ ? 1 : command_.ExitCode();
}

}  // namespace

int Follow(const Launch& launch, Folder& folder, Command& command, control::Signals& signals,
           Flight& flight) {
  return Follower(launch, folder, command, signals, flight).Run();
}

}  // namespace lockstep::watch::run
