// Runs the relay and the wire of an agent, obeys the orders of the director, and reports which
// faults traffic met.
#include "stress/links/link_plugin.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "stress/links/echo_meter.h"
#include "stress/links/link_hello.h"
#include "stress/links/link_orders.h"
#include "stress/links/network_side.h"
#include "stress/links/relay.h"
#include "stress/links/socket_log.h"

namespace lockstep::stress::links {
namespace {

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
      const auto rule = DecodeLinkRule(order.substr(verb.size()));
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
  fmt::print(stderr, "lockstep: rank {}: {}\n", rank, relay.status().message());
  return nullptr;
}

}  // namespace lockstep::stress::links
