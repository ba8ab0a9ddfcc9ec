// How a follower joins: it connects, says hello, answers the challenge, and waits for its welcome.
// A follower that was dropped without a word (strangers crowd the server) comes again until its
// deadline.
#include <algorithm>
#include <utility>

#include "core/base/now.h"
#include "core/control/frames.h"
#include "core/control/rendezvous/join_server.h"
#include "core/control/rendezvous/proof.h"

namespace lockstep::control::rendezvous {
namespace {

// What a follower says of itself, and how it answers a challenge.
struct Candidacy {
  const Endpoint& endpoint;
  const std::string& request;
  std::string nonce = RandomBytes();
  bool proved = false;

  // An error: whoever listens there does not know the secret.
  Status Answer(const ChallengeFrame& challenge, Channel& channel) {
    const Nonces nonces = {nonce, challenge.nonce};
    if (!IsSameProof(challenge.proof, ProofOfCoordinator(endpoint.secret, nonces))) {
      return EnvironmentError(
          "{} does not know this launch's secret: another program listens there; start the launch "
          "again",
          endpoint.address);
    }
    channel.Send(JoinFrame{ProofOfFollower(endpoint.secret, nonces, request), request});
    proved = true;
    return OkStatus();
  }
};

// Whether it came: false when the channel was closed without a word.
Result<bool> AwaitWelcome(Candidacy& candidacy, Channel& channel, Signals* signals,
                          Deadline deadline) {
  while (true) {
    if (const std::optional<Frame> frame = channel.Take()) {
      if (frame->is(FrameType::kWelcome) && candidacy.proved) return true;
      const std::optional<ChallengeFrame> challenge = Decode<ChallengeFrame>(frame->payload);
      if (frame->is(FrameType::kChallenge) && challenge && !candidacy.proved) {
        LOCKSTEP_RETURN_IF_ERROR(candidacy.Answer(*challenge, channel));
        continue;
      }
      return EnvironmentError(
          "the coordinator (rank 0) did not admit this rank; all ranks must run the same program, "
          "each rank once");
    }
    if (!channel.open()) return false;
    if (deadline.Passed()) {
      return EnvironmentError(
          "the coordinator (rank 0) did not answer in time; see the messages "
          "of rank 0");
    }
    channel.MoveOn(deadline, signals == nullptr ? -1 : signals->fd());
    if (signals != nullptr) LOCKSTEP_RETURN_IF_ERROR(signals->TakeBeforeMeeting());
  }
}

}  // namespace

Result<Channel> Join(const Endpoint& endpoint, const AgentInfo& info, Signals* signals,
                     Deadline deadline, const Contact& own) {
  const std::string request = Encode(JoinWords{info, own.address, own.port});
  for (double pause = 0.002;; pause = std::min(2 * pause, 0.1)) {
    LOCKSTEP_ASSIGN_OR_RETURN(Fd fd, ConnectTo(endpoint, deadline));
    Channel channel(std::move(fd), kMostFrameBytes);
    Candidacy candidacy{endpoint, request};
    channel.Send(HelloFrame{kProtocolVersion, candidacy.nonce});
    LOCKSTEP_ASSIGN_OR_RETURN(const bool welcome,
                              AwaitWelcome(candidacy, channel, signals, deadline));
    if (welcome) return channel;
    // Where strangers crowd, one that belongs there can be dropped for one of them.
    if (deadline.Passed()) {
      return EnvironmentError(
          "the coordinator (rank 0) is gone or did not admit this rank; see the messages of rank "
          "0");
    }
    SleepNs(static_cast<long>(pause * 1e9));
  }
}

}  // namespace lockstep::control::rendezvous
