// The connections that a relay passes on, and what is wrong with each.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "stress/links/flow.h"
#include "stress/links/link_rule.h"
#include "stress/links/relay.h"

namespace lockstep::stress::links {

// The thread's own; nothing here is shared.
class Switchboard {
 public:
  using Tell = std::function<void(RelayReport)>;
  using Name = std::function<void(RelayedNames)>;
  using Count = std::function<void(int connection, const FlowLedger& out, const FlowLedger& in)>;
  Switchboard(int listening, Tell tell, Name name, Count count)
      : listening_(listening),
        tell_(std::move(tell)),
        name_(std::move(name)),
        count_(std::move(count)) {}

  void Answer(int number, int peer);
  void Apply(const LinkRule& rule);
  void Heal(int rule);
  void Clear();
  // Waits for traffic, a time that comes, or `wake`, and does what is to do.
  void Turn(int wake);

 private:
  struct Connection {
    enum class State { kHello, kAsking, kConnecting, kOpen, kOver };
    State state = State::kHello;
    Fd worker;
    Fd upstream;
    std::string hello;
    sockaddr_storage destination{};
    int peer = -1;
    std::int64_t answer_by_ns = 0;
    std::optional<Flow> out, in;
  };
  using State = Connection::State;
  void Accept();
  void ReadHello(int number, Connection& connection);
  void ConnectUpstream(int number, Connection& connection);
  void Finish(int number, Connection& connection, int error);
  void Serve(int number, Connection& connection, std::int64_t now_ns, short worker, short upstream);
  void Pass(int number, Connection& connection, std::int64_t now_ns, short worker, short upstream);
  static std::array<pollfd, 2> Ends(const Connection& connection);
  void Collect(Connection& connection);
  std::int64_t WakeNs(std::int64_t now_ns) const;

  int listening_;
  Tell tell_;
  Name name_;
  Count count_;
  int next_ = 0;
  std::map<int, Connection> connections_;
  std::map<int, LinkRule> rules_;
  std::map<int, bool> told_;  // of touched rules
  std::vector<char> scratch_ = std::vector<char>(Flow::kReadBytes);
};

}  // namespace lockstep::stress::links
