// The watchers of other ranks, as rank 0's sees them: their processes, and rounds of looks.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/control/channel.h"
#include "core/control/rendezvous/join_server.h"
#include "core/control/signals.h"
#include "watch/run/flight.h"
#include "watch/run/frames.h"
#include "watch/run/launch.h"
#include "watch/run/process.h"

namespace lockstep::watch::run {

class Followers : public FlightElsewhere {
 public:
  static Result<std::unique_ptr<Followers>> Listen(const Launch& launch, control::Signals& signals);
  ~Followers() override;

  // Where they find this one, for MPI to carry.
  const control::rendezvous::Endpoint& endpoint() const { return server_->endpoint(); }
  void AddTo(std::vector<pollfd>& items) const;
  // Lets in who came, and hears what they tell.
  void Serve();
  // Processes that were not taken before.
  std::vector<std::unique_ptr<Process>> TakeNew();

  // Asks all for what they see now. Only one round at a time.
  void StartRound();
  bool InRound() const { return in_round_; }
  // All have answered: what their processes tell was looked at after the round began. Says once
  // which do not answer for long.
  bool EndRound();

  bool AllJoined() const { return static_cast<int>(all_.size()) == size_ - 1; }
  // Each that joined has told all, or is lost.
  bool AllEnded() const;
  bool AnyLost() const;
  // The exit code of an ended one that was not dismissed yet, by its rank in the launch.
  std::vector<std::pair<int, int>> Ended() const;
  void Dismiss(int rank);
  void DismissAll();
  // Ends their commands at once.
  void Kill();

  // Of PyTorch's Flight Recorder, while their ranks are silent.
  std::vector<int> AskForDumps() override;
  std::vector<WrittenDump> Dumps() override;

 private:
  class Remote;
  struct Seen;
  struct Follower {
    explicit Follower(control::rendezvous::JoinRequest request)
        : rank(request.info.rank),
          host(std::move(request.info.host)),
          channel(std::move(request.channel)) {}
    int rank;
    std::string host;
    control::Channel channel;
    std::map<std::uint32_t, std::shared_ptr<Seen>> processes;
    std::uint64_t round = 0;
    std::optional<int> code;  // told all
    bool lost = false;
    bool dismissed = false;
    std::optional<AnswerFrame> answer;
    bool over() const { return lost || dismissed; }
  };

  Followers(int size, control::Signals& signals) : size_(size), signals_(signals) {}
  void Hear(Follower& follower);
  // False where it is no frame of ours.
  bool Understand(Follower& follower, const control::Frame& frame);
  bool Begin(Follower& follower, const control::Frame& process);
  bool Continue(Follower& follower, const control::Frame& events_or_facts);
  void Lost(Follower& follower);
  void Say(const Follower& follower, const char* what) const;
  std::optional<AnswerFrame> Ask(Follower& follower, AskFrame question);

  int size_;
  control::Signals& signals_;
  std::unique_ptr<control::rendezvous::EndpointServer> endpoints_;
  std::unique_ptr<control::rendezvous::JoinServer> server_;
  std::map<int, std::unique_ptr<Follower>> all_;
  std::vector<std::unique_ptr<Process>> fresh_;
  std::uint64_t round_ = 0;
  std::int64_t round_began_ns_ = 0;
  bool in_round_ = false;
  bool said_silent_ = false;
  std::uint64_t questions_ = 0;
  std::map<int, Follower*> dumps_of_;  // whom to ask for the dump of a rank
};

}  // namespace lockstep::watch::run
