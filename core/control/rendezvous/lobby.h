// How followers find the coordinator and are let in.
//
// On one host the coordinator listens on a unix socket, and the kernel tells whose process
// connects: others than our own user's are dropped at once. Across hosts it listens on one address
// with a port of the kernel's choice. Who wants in proves knowledge of the launch's secret in its
// first frame. Whoever is wrong or talks too much is dropped, and of those that say nothing the
// oldest when they become many: none of them makes others wait. Who was dropped although it belongs
// here joins again. Address and secret go only over channels of our own user: an abstract unix
// socket whose peer is asked for its user id, or the launcher's MPI.
#ifndef LOCKSTEP_CORE_CONTROL_RENDEZVOUS_LOBBY_H_
#define LOCKSTEP_CORE_CONTROL_RENDEZVOUS_LOBBY_H_

#include <poll.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/base/status.h"
#include "core/control/agent_info.h"
#include "core/control/channel.h"
#include "core/control/context.h"
#include "core/control/roster.h"
#include "core/control/signals.h"

namespace lockstep::control::rendezvous {

inline constexpr std::size_t kSecretBytes = 16;

// Where the coordinator is, and what opens its door.
struct Invitation {
  std::string address;     // IPv4, or "@name" of a unix socket
  std::uint16_t port = 0;  // of IPv4
  std::string secret;      // kSecretBytes of the kernel's randomness
};
std::string EncodeInvitation(const Invitation& invitation);
std::optional<Invitation> DecodeInvitation(std::string_view bytes);

// Takes the same time wherever the difference is.
bool SameSecret(std::string_view a, std::string_view b);

// A listening socket, while followers arrive.
class Lobby {
 public:
  // `address`: IPv4, or "@" for a unix socket. `secret`: none for a new one.
  static Result<std::unique_ptr<Lobby>> Listen(const std::string& address, int followers,
                                               const std::string& secret = "");
  const Invitation& invitation() const { return invitation_; }

  struct Guest {
    AgentInfo info;
    Contact contact;
    Channel channel;
  };
  // Admits ranks 1..followers; the result is ordered by rank. When `door` is given, hands the
  // invitation to whoever knocks there. Errors name the ranks that are missing.
  Result<std::vector<Guest>> Gather(class Door* door, Signals& signals, Deadline deadline);
  // For a loop that does other things until Gather or GatherSome: what to poll, and what to do
  // then. Who belongs here waits, and strangers are dropped, so that no queue is full when it
  // matters.
  void AddTo(std::vector<pollfd>& items) const;
  Status Serve();
  // Whoever came by the deadline, or when `enough` came. A signal to end leaves `hurry_seconds`.
  std::vector<Guest> GatherSome(Signals& signals, Deadline deadline, std::size_t enough,
                                double hurry_seconds);

 private:
  explicit Lobby(int followers) : guests_(static_cast<std::size_t>(followers)) {}
  void HearPending();
  // Admits, or drops (returns true: it is no longer pending).
  bool Hear(Channel& pending);
  void Welcome();  // from now on
  std::string Missing() const;
  Status PollOnce(Door* door, Signals& signals, Deadline deadline);

  Fd listener_;
  Invitation invitation_;
  bool welcoming_ = false;
  std::deque<Channel> pending_;  // the oldest first
  std::vector<std::optional<Guest>> guests_;
};

// An abstract unix socket that gives the invitation to processes of our own user on this host.
class Door {
 public:
  static Result<std::unique_ptr<Door>> Open(const LaunchContext& context,
                                            const Invitation& invitation);
  int fd() const { return fd_.get(); }
  Status Serve();

 private:
  Fd fd_;
  std::string bytes_;
};
// The follower's part: knocks until the coordinator is there.
Result<Invitation> KnockAtDoor(const LaunchContext& context, Signals& signals, Deadline deadline);

// The follower's part: connects, says hello, waits to be admitted; again if it was dropped without
// a word. `own`: where this agent can be reached itself. kTerminated: a signal to end came; none is
// heard when `signals` is not given.
Result<Channel> Join(const Invitation& invitation, const AgentInfo& info, Signals* signals,
                     Deadline deadline, const Contact& own = {});
Result<Fd> ConnectTo(const Invitation& invitation, Deadline deadline, bool* refused = nullptr);

}  // namespace lockstep::control::rendezvous

#endif  // LOCKSTEP_CORE_CONTROL_RENDEZVOUS_LOBBY_H_
