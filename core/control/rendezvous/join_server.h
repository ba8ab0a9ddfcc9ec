// How followers find the coordinator and are let in.
//
// On one host the coordinator listens on a unix socket, and the kernel tells whose process
// connects: others than our own user's are dropped at once. Across hosts it listens on one address
// with a port of the kernel's choice. Who wants in proves knowledge of the launch's secret, and so
// does the coordinator. Whoever is wrong or talks too much is dropped, and of those that say
// nothing the oldest when they become many: none of them makes others wait. Who was dropped
// although it belongs here joins again. Address and secret go only over channels of our own user:
// an abstract unix socket whose peer is asked for its user id, or the launcher's MPI.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/base/status.h"
#include "core/control/channel.h"
#include "core/control/context.h"
#include "core/control/facts.h"
#include "core/control/rendezvous/endpoint.h"
#include "core/control/rendezvous/proof.h"
#include "core/control/roster.h"
#include "core/control/signals.h"

namespace lockstep::control::rendezvous {

// An agent that was admitted.
struct JoinRequest {
  AgentInfo info;
  Contact contact;
  Channel channel;
};

// A listening socket, while followers arrive.
class JoinServer {
 public:
  // `address`: IPv4, or "@" for a unix socket. `secret`: none for a new one. `port`: of IPv4, 0 for
  // the kernel's choice.
  static Result<std::unique_ptr<JoinServer>> Listen(const std::string& address, int followers,
                                                    const std::string& secret = "",
                                                    std::uint16_t port = 0);
  const Endpoint& endpoint() const { return endpoint_; }

  // Admits ranks 1..followers; the result is ordered by rank. When `endpoints` is given, tells the
  // endpoint to whoever asks there. Errors name the ranks that are missing.
  Result<std::vector<JoinRequest>> Gather(EndpointServer* endpoints, Signals& signals,
                                          Deadline deadline);
  // For a loop that does other things until Gather or GatherSome: what to poll, and what to do
  // then. Who belongs here waits, and strangers are dropped, so that no queue is full when it
  // matters.
  void AddTo(std::vector<pollfd>& items) const;
  Status Serve();
  // Whoever came by the deadline, or when `enough` came. A signal to end leaves `hurry_seconds`.
  std::vector<JoinRequest> GatherSome(Signals& signals, Deadline deadline, std::size_t enough,
                                      double hurry_seconds);

 private:
  // Whose proof is awaited, or whose hello while there are no nonces.
  struct Pending {
    Channel channel;
    Nonces nonces;
  };

  explicit JoinServer(int followers) : requests_(static_cast<std::size_t>(followers)) {}
  // Challenges, then admits or drops (returns true: it is no longer pending).
  bool Hear(Pending& pending);
  bool Challenge(const Frame& hello, Pending& pending);
  void Admit(const Frame& join, Pending& pending);
  void Welcome();  // from now on
  std::string Missing() const;
  Status PollOnce(EndpointServer* endpoints, Signals& signals, Deadline deadline);

  Fd listener_;
  Endpoint endpoint_;
  bool welcoming_ = false;
  std::deque<Pending> pending_;  // the oldest first
  std::vector<std::optional<JoinRequest>> requests_;
};

// How a follower is let in.
// The follower's part: connects, says hello, waits to be admitted; again if it was dropped without
// a word. `own`: where this agent can be reached itself. kTerminated: a signal to end came; none is
// heard when `signals` is not given.
Result<Channel> Join(const Endpoint& endpoint, const AgentInfo& info, Signals* signals,
                     Deadline deadline, const Contact& own = {});

}  // namespace lockstep::control::rendezvous
