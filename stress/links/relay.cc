#include "stress/links/relay.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/launch/fd.h"
#include "core/launch/sockets.h"
#include "stress/links/flow.h"
#include "stress/links/link_hello.h"
#include "stress/links/socket_options.h"

namespace lockstep {
namespace {

// Whose a connection is gets answered within milliseconds, or never.
constexpr std::int64_t kAnswerNs = 5'000'000'000;
constexpr std::size_t kMostConnections = 4096;
constexpr std::int64_t kIdleNs = 1'000'000'000;

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

// The thread's own; nothing here is shared.
class Switchboard {
 public:
  using Tell = std::function<void(RelayReport)>;
  using Name = std::function<void(RelayedNames)>;
  Switchboard(int listening, Tell tell, Name name)
      : listening_(listening), tell_(std::move(tell)), name_(std::move(name)) {}

  void Answer(int number, int peer);
  void Apply(const LinkRule& rule);
  void Heal(int rule);
  void Clear();
  // Waits for traffic, a time that comes, or `wake`, and does what is to do.
  void Turn(int wake);

 private:
  using State = Connection::State;
  void Accept();
  void ReadHello(int number, Connection& connection);
  void ConnectUpstream(Connection& connection);
  void Finish(Connection& connection, int error);
  void Pass(Connection& connection, std::int64_t now_ns, short worker, short upstream);
  void Collect(Connection& connection);
  std::int64_t WakeNs(std::int64_t now_ns) const;

  int listening_;
  Tell tell_;
  Name name_;
  int next_ = 0;
  std::map<int, Connection> connections_;
  std::map<int, LinkRule> rules_;
  std::map<int, bool> told_;  // of touched rules
  std::vector<char> scratch_ = std::vector<char>(Flow::kReadBytes);
};

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
  if (n > 0 && hello.magic == kListens) name_({.remote = FormatEndpoint(hello.address)});
  if (n <= 0 || hello.magic != kConnects) {
    connection.state = State::kOver;
    return;
  }
  std::memcpy(&connection.destination, hello.address, sizeof hello.address);
  connection.state = State::kAsking;
  connection.answer_by_ns = MonotonicNs() + kAnswerNs;
  tell_({RelayReport::Kind::kAsk, number, FormatEndpoint(&connection.destination)});
}

void Switchboard::Answer(int number, int peer) {
  const auto found = connections_.find(number);
  if (found == connections_.end() || found->second.state != State::kAsking) return;
  found->second.peer = peer;
  ConnectUpstream(found->second);
}

void Switchboard::ConnectUpstream(Connection& connection) {
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
  if (syscall(SYS_connect, fd, to, length) == 0) return Finish(connection, 0);
  if (errno != EINPROGRESS) Finish(connection, errno);
}

void Switchboard::Finish(Connection& connection, int error) {
  const LinkAnswer answer{error};
  if (error == 0) {
    const sockaddr_storage worker = AddressOf(connection.worker.get(), getpeername);
    const sockaddr_storage local = AddressOf(connection.upstream.get(), getsockname);
    name_(
        {FormatEndpoint(&worker), FormatEndpoint(&local), FormatEndpoint(&connection.destination)});
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

void Switchboard::Pass(Connection& connection, std::int64_t now_ns, short worker, short upstream) {
  constexpr short kInput = POLLIN | POLLHUP | POLLERR;
  Flow& out = *connection.out;
  Flow& in = *connection.in;
  if ((worker & kInput) != 0 && out.wants_input()) out.Read(scratch_, now_ns);
  if ((upstream & kInput) != 0 && in.wants_input()) in.Read(scratch_, now_ns);
  out.Write(now_ns);
  in.Write(now_ns);
  if (!rules_.empty()) Collect(connection);
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

void Switchboard::Turn(int wake) {
  std::vector<pollfd> items{{wake, POLLIN, 0}, {listening_, POLLIN, 0}};
  for (const auto& [number, connection] : connections_) {
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
    items.push_back(worker);
    items.push_back(upstream);
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
    const short worker = items[i].revents, upstream = items[i + 1].revents;
    i += 2;
    if (connection.state == State::kHello && worker != 0) ReadHello(number, connection);
    if (connection.state == State::kAsking && now_ns >= connection.answer_by_ns) {
      ConnectUpstream(connection);
    } else if (connection.state == State::kConnecting && upstream != 0) {
      int error = 0;
      socklen_t length = sizeof error;
      getsockopt(connection.upstream.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      Finish(connection, error);
    } else if (connection.state == State::kOpen) {
      Pass(connection, now_ns, worker, upstream);
    }
  }
  std::erase_if(connections_, [](const auto& e) { return e.second.state == State::kOver; });
  if (items[1].revents != 0) Accept();
}

class RelayImpl final : public Relay {
 public:
  RelayImpl(Fd listening, int port, std::string name, Fd wake, Fd reports)
      : listening_(std::move(listening)),
        port_(port),
        name_(std::move(name)),
        wake_(std::move(wake)),
        reports_fd_(std::move(reports)),
        thread_([this] { Run(); }) {}
  ~RelayImpl() override {
    Post({}, true);
    thread_.join();
  }

  int port() const override { return port_; }
  const std::string& name() const override { return name_; }
  void Answer(int connection, int peer) override {
    Post([=](Switchboard& board) { board.Answer(connection, peer); });
  }
  void Apply(const LinkRule& rule) override {
    Post([=](Switchboard& board) { board.Apply(rule); });
  }
  void Heal(int rule) override {
    Post([=](Switchboard& board) { board.Heal(rule); });
  }
  void Clear() override {
    Post([](Switchboard& board) { board.Clear(); });
    const std::lock_guard lock(mutex_);
    names_.clear();
    reports_.clear();
  }
  int fd() const override { return reports_fd_.get(); }
  std::vector<RelayReport> TakeReports() override {
    const std::lock_guard lock(mutex_);
    eventfd_t count;
    eventfd_read(reports_fd_.get(), &count);
    return std::exchange(reports_, {});
  }
  std::vector<RelayedNames> Names() const override {
    const std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  using Command = std::function<void(Switchboard&)>;

  void Post(Command command, bool end = false) {
    const std::lock_guard lock(mutex_);
    ending_ = ending_ || end;
    if (command) commands_.push_back(std::move(command));
    eventfd_write(wake_.get(), 1);
  }

  void Run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the agent's
    Switchboard board(
        listening_.get(),
        [this](RelayReport report) {
          const std::lock_guard lock(mutex_);
          reports_.push_back(std::move(report));
          eventfd_write(reports_fd_.get(), 1);
        },
        [this](RelayedNames names) {
          const std::lock_guard lock(mutex_);
          names_.push_back(std::move(names));
        });
    while (true) {
      std::vector<Command> commands;
      {
        const std::lock_guard lock(mutex_);
        if (ending_) return;
        eventfd_t count;
        eventfd_read(wake_.get(), &count);
        std::swap(commands, commands_);
      }
      for (const Command& command : commands) command(board);
      board.Turn(wake_.get());
    }
  }

  Fd listening_;
  int port_;
  std::string name_;
  Fd wake_;
  Fd reports_fd_;
  mutable std::mutex mutex_;
  bool ending_ = false;
  std::vector<Command> commands_;
  std::vector<RelayReport> reports_;
  std::vector<RelayedNames> names_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

Result<std::unique_ptr<Relay>> Relay::Start() {
  Fd listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Fd reports(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (!listening.valid() || !wake.valid() || !reports.valid() ||
      bind(listening.get(), any, length) != 0 || listen(listening.get(), SOMAXCONN) != 0 ||
      getsockname(listening.get(), any, &length) != 0) {
    return EnvironmentError(fmt::format(
        "a relay for faults of links cannot be opened on 127.0.0.1: {}; raise the limit on open "
        "files",
        std::strerror(errno)));
  }
  return std::unique_ptr<Relay>(
      std::make_unique<RelayImpl>(std::move(listening), ntohs(address.sin_port),
                                  FormatEndpoint(&address), std::move(wake), std::move(reports)));
}

}  // namespace lockstep
