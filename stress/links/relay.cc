// The relay's thread and what its owner shares with it: commands, reports, names.
#include "stress/links/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/agent/sockets.h"
#include "stress/links/switchboard.h"

namespace lockstep::stress::links {

Relay::Relay(Fd listening, int port, std::string name, Fd wake, Fd reports)
    : listening_(std::move(listening)),
      port_(port),
      name_(std::move(name)),
      wake_(std::move(wake)),
      reports_fd_(std::move(reports)),
      thread_([this] { Run(); }) {}

Relay::~Relay() {
  Post({}, true);
  thread_.join();
}

pid_t Relay::thread() const {
  tid_.wait(0);
  return tid_;
}

void Relay::Answer(int connection, int peer) {
  Post([=](Switchboard& board) { board.Answer(connection, peer); });
}

void Relay::Apply(const LinkRule& rule) {
  Post([=](Switchboard& board) { board.Apply(rule); });
}

void Relay::Heal(int rule) {
  Post([=](Switchboard& board) { board.Heal(rule); });
}

void Relay::Clear() {
  Post([](Switchboard& board) { board.Clear(); });
  const std::lock_guard lock(mutex_);
  names_.clear();
  by_connection_.clear();
  by_worker_.clear();
  reports_.clear();
}

std::vector<RelayReport> Relay::TakeReports() {
  const std::lock_guard lock(mutex_);
  eventfd_t count;
  eventfd_read(reports_fd_.get(), &count);
  return std::exchange(reports_, {});
}

std::vector<RelayedNames> Relay::Names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

std::optional<RelayedNames> Relay::Find(const std::string& worker) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_worker_.find(worker);
  if (found == by_worker_.end()) return std::nullopt;
  return names_[found->second];
}

void Relay::Post(Command command, bool end) {
  const std::lock_guard lock(mutex_);
  ending_ = ending_ || end;
  if (command) commands_.push_back(std::move(command));
  eventfd_write(wake_.get(), 1);
}

void Relay::Run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the agent's
  tid_ = gettid();
  tid_.notify_all();
  Switchboard board(
      listening_.get(),
      [this](RelayReport report) {
        const std::lock_guard lock(mutex_);
        reports_.push_back(std::move(report));
        eventfd_write(reports_fd_.get(), 1);
      },
      [this](RelayedNames names) {
        const std::lock_guard lock(mutex_);
        by_connection_[names.connection] = by_worker_[names.worker] = names_.size();
        names_.push_back(std::move(names));
      },
      [this](int connection, const FlowLedger& out, const FlowLedger& in) {
        Count(connection, out, in);
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

void Relay::Count(int connection, const FlowLedger& out, const FlowLedger& in) {
  const std::lock_guard lock(mutex_);
  const auto found = by_connection_.find(connection);
  if (found == by_connection_.end()) return;
  names_[found->second].out = out;
  names_[found->second].in = in;
}

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
    return EnvironmentError(
        "a relay for faults of links cannot be opened on 127.0.0.1: {}; raise the limit on open "
        "files",
        std::strerror(errno));
  }
  return std::unique_ptr<Relay>(new Relay(std::move(listening), ntohs(address.sin_port),
                                          agent::FormatAddress(&address), std::move(wake),
                                          std::move(reports)));
}

}  // namespace lockstep::stress::links
