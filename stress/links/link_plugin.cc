// Runs the relay and the wire of an agent, obeys the orders of the director, and reports which
// faults traffic met.
#include "stress/links/link_plugin.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "core/agent/sockets.h"
#include "core/base/clock.h"
#include "core/base/fd.h"
#include "core/base/print_stderr.h"
#include "core/control/codec.h"
#include "core/environment/run_delay.h"
#include "core/verdict/tcp_socket.h"
#include "stress/links/echo_meter.h"
#include "stress/links/link_hello.h"
#include "stress/links/link_orders.h"
#include "stress/links/network_side.h"
#include "stress/links/relay.h"
#include "stress/links/socket_book.h"

namespace lockstep::stress::links {
namespace {

// Looks at the TCP sockets of a process again and again, so that it is known between which moments
// bytes were written and came (socket_book.h): what is then between the two ends is on the way. A
// thread looks, and sleeps for twenty times as long as a look cost it. What a look saw was so at
// some moment between the clock before it and the clock after it.
class SocketLog {
 public:
  SocketLog() = default;
  ~SocketLog() { End(); }
  SocketLog(const SocketLog&) = delete;
  SocketLog& operator=(const SocketLog&) = delete;

  // Watches `pid` in a thread, with at most a twentieth of a processor, until End(). `relay`: the
  // thread of this process whose wait for a processor counts as that of `pid`. `translate` is
  // called in the watching thread after each look, and leaves out what shall not be watched.
  void Begin(pid_t pid, pid_t relay,
             std::function<void(std::vector<verdict::TcpSocket>&)> translate);
  void End();
  std::vector<verdict::TcpSocket> Connections() const;

 private:
  void Run(pid_t pid, pid_t relay);

  std::function<void(std::vector<verdict::TcpSocket>&)> translate_;

  mutable std::mutex mutex_;
  SocketBook book_;
  bool ending_ = false;
  std::thread thread_;
};

constexpr double kLookSeconds = 0.004;  // between two looks
constexpr double kLooksPerCost = 20;
constexpr double kLooksPerAverage = 16;
// Listing threads costs more than reading what all of them waited.
constexpr int kLooksPerListing = 16;
constexpr int kLeastLooksPerSearch = 16;
constexpr int kMostLooksPerSearch = 128;
constexpr double kLongestPauseSeconds = 0.05;

double Now() { return static_cast<double>(MonotonicNs()) * 1e-9; }

// Of the processor: on a busy machine the clock on the wall says nothing of what we cost it.
double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void SocketLog::Begin(pid_t pid, pid_t relay,
                      std::function<void(std::vector<verdict::TcpSocket>&)> translate) {
  End();
  book_ = SocketBook();
  ending_ = false;
  translate_ = std::move(translate);
  thread_ = std::thread([=, this] { Run(pid, relay); });
}

void SocketLog::End() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  thread_.join();
}

std::vector<verdict::TcpSocket> SocketLog::Connections() const {
  const std::lock_guard lock(mutex_);
  return book_.Connections();
}

void SocketLog::Run(pid_t pid, pid_t relay) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the agent's
  environment::RunDelay worker_delay(pid), relay_delay(getpid(), relay);
  agent::SocketLooks looks(pid, kLeastLooksPerSearch, kMostLooksPerSearch);
  int number = 0;
  double cost_s = 0;  // of the last looks, on average: few of them search
  while (true) {
    const double began_s = ThreadSeconds();
    if (++number % kLooksPerListing == 0) worker_delay.FindThreads();
    SocketBook::Look look;
    look.began_s = Now();
    look.waited_s = worker_delay.Seconds() + relay_delay.Seconds();
    if (!worker_delay.known()) look.waited_s = std::numeric_limits<double>::quiet_NaN();
    std::vector<verdict::TcpSocket> seen = looks.Look();
    look.ended_s = Now();
    translate_(seen);
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      book_.Note(seen, look);
    }
    cost_s += (ThreadSeconds() - began_s - cost_s) / kLooksPerAverage;
    const double pause_s =
        std::min(std::max(kLookSeconds, kLooksPerCost * cost_s), kLongestPauseSeconds);
    const timespec pause{0, static_cast<long>(pause_s * 1e9)};
    nanosleep(&pause, nullptr);
  }
}

std::string Describe(const RelayReport& report) {
  switch (report.kind) {
    case RelayReport::Kind::kAsk:
      return fmt::format("{} {} {}", kAskReport, report.connection, report.endpoint);
    case RelayReport::Kind::kTouched:
      return fmt::format("{} {} {}", kTouchedReport, report.rule, report.bytes);
    case RelayReport::Kind::kApplied:
      break;
  }
  return fmt::format("{} {}", kAppliedReport, report.rule);
}

class LinkPlugin final : public agent::AgentPlugin {
 public:
  LinkPlugin(std::unique_ptr<Relay> relay, bool any_interface)
      : relay_(std::move(relay)),
        network_(any_interface),
        all_(epoll_create1(EPOLL_CLOEXEC)),
        bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (const int fd : {relay_->fd(), network_.fd(), bell_.get()}) {
      epoll_event event{};
      event.events = EPOLLIN;
      epoll_ctl(all_.get(), EPOLL_CTL_ADD, fd, &event);
    }
  }

  std::vector<std::string> BeginLifetime(int) override {
    relay_->Clear();
    network_.Clear();
    log_.End();
    echo_.Begin();
    worker_ = 0;
    if (!used_) return {};
    return {fmt::format("{}={}", kLinksVariable, relay_->port())};
  }
  void OnStarted(pid_t worker) override {
    worker_ = worker;
    if (watches_) BeginLog();
  }
  void BeginLog() {
    log_.Begin(worker_, relay_->thread(), [this](std::vector<verdict::TcpSocket>& sockets) {
      if (echo_.Start(MonotonicNs())) eventfd_write(bell_.get(), 1);
      Rename(sockets);
      // A connection that has no name yet is none yet.
      std::erase_if(sockets,
                    [this](const verdict::TcpSocket& s) { return s.remote == relay_name_; });
    });
  }

  void Obey(std::string_view order) override {
    std::istringstream words{std::string(order)};
    std::string verb;
    words >> verb;
    int first = 0, second = 0;
    const std::string_view rest = order.substr(std::min(order.size(), verb.size() + 1));
    if (network_.Obey(verb, rest)) return;
    if (verb == kEcho) {
      return echo_.Finish(std::atoll(std::string(rest).c_str()), MonotonicNs());
    }
    if (verb == kApplyOrder) {
      const auto rule = control::Decode<LinkRule>(rest);
      LOCKSTEP_CHECK(rule.has_value(), "a rule of our own making");
      return relay_->Apply(*rule);
    }
    words >> first;
    if (verb == kUseOrder) used_ = first != 0;
    // Across hosts a worker of MPI runs before anybody knows what it is for.
    if (verb == kWatchOrder && first != 0 && !watches_ && worker_ > 0) BeginLog();
    if (verb == kWatchOrder) watches_ = first != 0;
    if (verb == kHealOrder) relay_->Heal(first);
    if (verb == kAnswerOrder && words >> second) relay_->Answer(first, second);
  }

  int fd() const override { return all_.get(); }

  std::vector<std::string> TakeReports() override {
    std::vector<std::string> texts = network_.TakeReports();
    for (const RelayReport& report : relay_->TakeReports()) texts.push_back(Describe(report));
    eventfd_t count;
    eventfd_read(bell_.get(), &count);
    if (const auto begun = echo_.Unsent()) texts.push_back(fmt::format("{} {}", kEcho, *begun));
    return texts;
  }

  void Translate(std::vector<verdict::TcpSocket>& sockets) override {
    if (!watches_) return;
    Rename(sockets);
    for (const RelayedNames& name : relay_->Names()) {
      if (!name.worker.empty()) continue;
      verdict::TcpSocket& listener = sockets.emplace_back();
      listener.local = name.remote;
      listener.closed = true;  // or not: those that are open are there, too
    }
    // What was watched says more; what was looked at now is newer, and knows who listens.
    for (const verdict::TcpSocket& watched : log_.Connections()) {
      const auto now = std::ranges::find_if(sockets, [&](const verdict::TcpSocket& s) {
        return s.local == watched.local && s.remote == watched.remote;
      });
      if (now == sockets.end()) {
        sockets.push_back(watched);
        sockets.back().closed = true;
        continue;
      }
      now->arrivals = watched.arrivals;
      now->waited_s = watched.waited_s;
      now->written_steps = watched.written_steps;
      now->received_steps = watched.received_steps;
      now->out = watched.out;
      now->in = watched.in;
    }
  }

  double EchoSeconds() const override { return echo_.Seconds(MonotonicNs()); }

 private:
  // Also called in the thread of the log.
  void Rename(std::vector<verdict::TcpSocket>& sockets) const {
    for (verdict::TcpSocket& socket : sockets) {
      if (socket.remote != relay_name_) continue;
      const std::optional<RelayedNames> found = relay_->Find(socket.local);
      if (!found) continue;
      socket.local = found->local;
      socket.remote = found->remote;
      // Those of the way to the relay.
      socket.round_trip_us = socket.least_round_trip_us = socket.retransmits = 0;
      socket.limited_s = 0;
      socket.relayed = true;
      socket.out = {{{found->out.bytes, found->out.byte_s}}, found->out.lost};
      socket.in = {{{found->in.bytes, found->in.byte_s}}, found->in.lost};
      socket.written -= std::min<std::uint64_t>(socket.written, sizeof(LinkHello));
      socket.received -= std::min<std::uint64_t>(socket.received, sizeof(LinkAnswer));
    }
  }

  std::unique_ptr<Relay> relay_;
  const std::string relay_name_ = relay_->name();
  NetworkSide network_;
  Fd all_;         // of epoll(7): what either has to report
  const Fd bell_;  // a word for the coordinator
  EchoMeter echo_;
  SocketLog log_;
  pid_t worker_ = 0;      // 0: none was started in this lifetime
  bool used_ = false;     // the relay, by workers to come
  bool watches_ = false;  // their sockets
};

}  // namespace

std::unique_ptr<agent::AgentPlugin> MakeLinkPlugin(int rank, bool any_interface) {
  Result<std::unique_ptr<Relay>> relay = Relay::Start();
  if (relay.ok()) return std::make_unique<LinkPlugin>(std::move(relay).value(), any_interface);
  // The faults then do not fire, and the case is unknown.
  PrintStderr("lockstep: rank {}: {}\n", rank, relay.status().message());
  return nullptr;
}

}  // namespace lockstep::stress::links
