// One turn after the other: who connects says where to, its owner says whose that is, and then
// bytes pass in both directions, through a flow each.
#include "stress/links/switchboard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/agent/sockets.h"
#include "core/base/clock.h"
#include "stress/links/link_hello.h"

namespace lockstep::stress::links {
namespace {

void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// The kernel tells the other end of a reset when this descriptor is closed.
void ResetOnClose(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

using NameFunction = int (*)(int, sockaddr*, socklen_t*);
// getsockname or getpeername.
sockaddr_storage AddressOf(int fd, NameFunction name) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  name(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

// Whose a connection is gets answered within milliseconds, or never.
constexpr std::int64_t kAnswerNs = 5'000'000'000;
constexpr std::size_t kMostConnections = 4096;
constexpr std::int64_t kIdleNs = 1'000'000'000;

}  // namespace

void Switchboard::Accept() {
  Fd fd(accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid() || connections_.size() >= kMostConnections) return;
  SetNoDelay(fd.get());
  connections_[next_++].worker = std::move(fd);
}

void Switchboard::ReadHello(int number, Connection& connection) {
  char bytes[sizeof(LinkHello)];
  const ssize_t n = recv(connection.worker.get(), bytes, sizeof bytes - connection.hello.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) connection.hello.append(bytes, static_cast<std::size_t>(n));
  if (n > 0 && connection.hello.size() < sizeof(LinkHello)) return;
  LinkHello hello;
  if (n > 0) std::memcpy(&hello, connection.hello.data(), sizeof hello);
  if (n > 0 && hello.magic == kListens) name_({.remote = agent::FormatAddress(hello.address)});
  if (n <= 0 || hello.magic != kConnects) {
    connection.state = State::kOver;
    return;
  }
  std::memcpy(&connection.destination, hello.address, sizeof hello.address);
  connection.state = State::kAsking;
  connection.answer_by_ns = MonotonicNs() + kAnswerNs;
  tell_({RelayReport::Kind::kAsk, number, agent::FormatAddress(&connection.destination)});
}

void Switchboard::Answer(int number, int peer) {
  const auto found = connections_.find(number);
  if (found == connections_.end() || found->second.state != State::kAsking) return;
  found->second.peer = peer;
  ConnectUpstream(number, found->second);
}

void Switchboard::ConnectUpstream(int number, Connection& connection) {
  const auto* const to = reinterpret_cast<const sockaddr*>(&connection.destination);
  const socklen_t length = to->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  connection.upstream = Fd(socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = connection.upstream.get();
  SetNoDelay(fd);
  // A worker that chose one of its addresses is known to its peer by that.
  sockaddr_storage own = AddressOf(connection.worker.get(), getpeername);
  auto& four = reinterpret_cast<sockaddr_in&>(own);
  if (own.ss_family == AF_INET && to->sa_family == AF_INET &&
      (ntohl(four.sin_addr.s_addr) >> 24) != 127) {
    four.sin_port = 0;
    static_cast<void>(bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof four));
  }
  connection.state = State::kConnecting;
  // Not by the name that the shim of this program has taken.
  if (syscall(SYS_connect, fd, to, length) == 0) return Finish(number, connection, 0);
  if (errno != EINPROGRESS) Finish(number, connection, errno);
}

void Switchboard::Finish(int number, Connection& connection, int error) {
  const LinkAnswer answer{error};
  if (error == 0) {
    const sockaddr_storage worker = AddressOf(connection.worker.get(), getpeername);
    const sockaddr_storage local = AddressOf(connection.upstream.get(), getsockname);
    name_({agent::FormatAddress(&worker), agent::FormatAddress(&local),
           agent::FormatAddress(&connection.destination), number});
  }
  send(connection.worker.get(), &answer, sizeof answer, MSG_NOSIGNAL);
  connection.state = error == 0 ? State::kOpen : State::kOver;
  if (error != 0) return;
  const int worker = connection.worker.get(), upstream = connection.upstream.get();
  connection.out.emplace(worker, upstream, true);
  connection.in.emplace(upstream, worker, false);
  connection.out->SetRules(rules_, connection.peer);
  connection.in->SetRules(rules_, connection.peer);
}

void Switchboard::Apply(const LinkRule& rule) {
  std::uint64_t broken = 0;
  if (!rule.reset) rules_[rule.id] = rule;
  for (auto& [number, connection] : connections_) {
    if (connection.state != State::kOpen) continue;
    if (!rule.reset) {
      connection.out->SetRules(rules_, connection.peer);
      connection.in->SetRules(rules_, connection.peer);
      Collect(connection);
    } else if (rule.Concerns(connection.peer, true) || rule.Concerns(connection.peer, false)) {
      ResetOnClose(connection.worker.get());
      ResetOnClose(connection.upstream.get());
      connection.state = State::kOver;
      ++broken;
    }
  }
  tell_({.kind = RelayReport::Kind::kApplied, .rule = rule.id});
  if (broken > 0) tell_({.kind = RelayReport::Kind::kTouched, .rule = rule.id, .bytes = broken});
}

void Switchboard::Heal(int rule) {
  rules_.erase(rule);
  for (auto& [number, connection] : connections_) {
    if (connection.state != State::kOpen) continue;
    connection.out->SetRules(rules_, connection.peer);
    connection.in->SetRules(rules_, connection.peer);
  }
}

void Switchboard::Clear() {
  connections_.clear();
  rules_.clear();
  told_.clear();
}

void Switchboard::Collect(Connection& connection) {
  for (Flow* flow : {&*connection.out, &*connection.in}) {
    for (const auto& [rule, bytes] : flow->TakeTouched()) {
      if (std::exchange(told_[rule], true)) continue;
      tell_({.kind = RelayReport::Kind::kTouched, .rule = rule, .bytes = bytes});
    }
  }
}

void Switchboard::Pass(int number, Connection& connection, std::int64_t now_ns, short worker,
                       short upstream) {
  constexpr short kInput = POLLIN | POLLHUP | POLLERR;
  Flow& out = *connection.out;
  Flow& in = *connection.in;
  if ((worker & kInput) != 0 && out.wants_input()) out.Read(scratch_, now_ns);
  if ((upstream & kInput) != 0 && in.wants_input()) in.Read(scratch_, now_ns);
  count_(number, out.ledger(), in.ledger());
  if (!rules_.empty()) Collect(connection);  // told before anybody gets what the rule met
  out.Write(now_ns);
  in.Write(now_ns);
  if (out.broken() || in.broken()) {
    ResetOnClose(connection.worker.get());
    ResetOnClose(connection.upstream.get());
    connection.state = State::kOver;
  }
  if (out.closed() && in.closed()) connection.state = State::kOver;
}

std::int64_t Switchboard::WakeNs(std::int64_t now_ns) const {
  std::int64_t wake = now_ns + kIdleNs;
  for (const auto& [number, connection] : connections_) {
    if (connection.state == State::kAsking) wake = std::min(wake, connection.answer_by_ns);
    if (connection.state != State::kOpen) continue;
    if (const auto due = connection.out->due_ns()) wake = std::min(wake, *due);
    if (const auto due = connection.in->due_ns()) wake = std::min(wake, *due);
  }
  return wake;
}

// What to wait for on its two sockets.
std::array<pollfd, 2> Switchboard::Ends(const Connection& connection) {
  pollfd worker{connection.worker.get(), 0, 0}, upstream{connection.upstream.get(), 0, 0};
  if (connection.state == State::kHello) worker.events = POLLIN;
  if (connection.state == State::kConnecting) upstream.events = POLLOUT;
  if (connection.state == State::kOpen) {
    const Flow &out = *connection.out, &in = *connection.in;
    worker.events =
        static_cast<short>((out.wants_input() ? POLLIN : 0) | (in.blocked() ? POLLOUT : 0));
    upstream.events =
        static_cast<short>((in.wants_input() ? POLLIN : 0) | (out.blocked() ? POLLOUT : 0));
  }
  // A broken socket that nobody may hear of yet would keep us awake.
  if (worker.events == 0) worker.fd = -1;
  if (upstream.events == 0) upstream.fd = -1;
  return {worker, upstream};
}

void Switchboard::Serve(int number, Connection& connection, std::int64_t now_ns, short worker,
                        short upstream) {
  if (connection.state == State::kHello && worker != 0) ReadHello(number, connection);
  if (connection.state == State::kAsking && now_ns >= connection.answer_by_ns) {
    ConnectUpstream(number, connection);
  } else if (connection.state == State::kConnecting && upstream != 0) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(connection.upstream.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    Finish(number, connection, error);
  } else if (connection.state == State::kOpen) {
    Pass(number, connection, now_ns, worker, upstream);
  }
}

void Switchboard::Turn(int wake) {
  std::vector<pollfd> items{{wake, POLLIN, 0}, {listening_, POLLIN, 0}};
  for (const auto& [number, connection] : connections_) {
    const std::array<pollfd, 2> ends = Ends(connection);
    items.insert(items.end(), ends.begin(), ends.end());
  }
  std::int64_t now_ns = MonotonicNs();
  const std::int64_t most_ns = std::max<std::int64_t>(WakeNs(now_ns) - now_ns, 0);
  const timespec most{most_ns / 1'000'000'000, most_ns % 1'000'000'000};
  if (ppoll(items.data(), items.size(), &most, nullptr) < 0) return;
  // Commands first: a connection that comes now is not one of those that they are about.
  if (items[0].revents != 0) return;
  now_ns = MonotonicNs();
  std::size_t i = 2;
  for (auto& [number, connection] : connections_) {
    Serve(number, connection, now_ns, items[i].revents, items[i + 1].revents);
    i += 2;
  }
  std::erase_if(connections_, [](const auto& e) { return e.second.state == State::kOver; });
  if (items[1].revents != 0) Accept();
}

}  // namespace lockstep::stress::links
