// The relay's thread and what its owner shares with it: commands, reports, names.
#include "stress/links/relay.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/agent/sockets.h"
#include "core/base/fd.h"
#include "stress/links/switchboard.h"

namespace lockstep::stress::links {
namespace {

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
  pid_t thread() const override {
    tid_.wait(0);
    return tid_;
  }
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
    by_connection_.clear();
    by_worker_.clear();
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
  std::optional<RelayedNames> Find(const std::string& worker) const override {
    const std::lock_guard lock(mutex_);
    const auto found = by_worker_.find(worker);
    if (found == by_worker_.end()) return std::nullopt;
    return names_[found->second];
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

  void Count(int connection, const FlowLedger& out, const FlowLedger& in) {
    const std::lock_guard lock(mutex_);
    const auto found = by_connection_.find(connection);
    if (found == by_connection_.end()) return;
    names_[found->second].out = out;
    names_[found->second].in = in;
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
  // Where in them.
  std::unordered_map<int, std::size_t> by_connection_;
  std::unordered_map<std::string, std::size_t> by_worker_;
  std::atomic<pid_t> tid_ = 0;
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
  return std::unique_ptr<Relay>(std::make_unique<RelayImpl>(
      std::move(listening), ntohs(address.sin_port), agent::FormatAddress(&address),
      std::move(wake), std::move(reports)));
}

}  // namespace lockstep::stress::links
