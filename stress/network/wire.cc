// A thread takes packets from the device, queues them as the rules say, and lets them out when they
// are due.
#include "stress/network/wire.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/agent/sockets.h"
#include "core/base/clock.h"
#include "core/base/process_stat.h"

namespace lockstep::stress::network {
namespace {

constexpr std::size_t kMostPacketBytes = 65536;
// In one turn, so that neither direction starves.
constexpr int kMostReads = 64;
constexpr int kMostAncestors = 64;

using Spared = std::set<std::pair<std::uint32_t, std::uint16_t>>;

// The local ends of all TCP sockets of these processes and of those that started them.
Spared EndsOf(const std::vector<int>& processes) {
  std::set<int> all;
  for (int pid : processes) {
    for (int i = 0; i < kMostAncestors && pid > 1 && all.insert(pid).second; ++i) {
      pid = StatOf(pid).value_or(ProcessStat()).parent;
    }
  }
  Spared ends;
  for (const int pid : all) {
    for (const verdict::TcpSocket& socket : agent::SocketsOf(pid)) {
      const auto colon = socket.local.find(':');
      const auto address = ParseIpAddress(socket.local.substr(0, colon));
      if (!address) continue;  // of the loopback, or IPv6
      const int port = std::atoi(socket.local.c_str() + colon + 1);
      ends.insert({*address, static_cast<std::uint16_t>(port)});
    }
  }
  return ends;
}

}  // namespace

Wire::Wire(std::unique_ptr<WireDevice> device, Fd wake, Fd news)
    : device_(std::move(device)), wake_(std::move(wake)), news_(std::move(news)) {
  thread_ = std::thread([this] { Run(); });
}

Wire::~Wire() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

Result<std::string> Wire::Apply(const NetworkRule& rule, bool any_interface) {
  const Spared spared = EndsOf(rule.spared);
  const std::lock_guard lock(mutex_);
  // First the rule, so that no packet passes without it.
  queue_.Add(rule, spared);
  std::string ways;
  for (const std::string& text : rule.to) {
    const std::optional<std::uint32_t> address = ParseIpAddress(text);
    const Status status = address ? device_->Divert(*address, any_interface)
                                  : EnvironmentError("'{}' is no IPv4 address", text);
    if (!status.ok()) {
      queue_.Remove(rule.id);
      return status;
    }
    ways +=
        fmt::format("{}{} ({})", ways.empty() ? "" : ", ", text, device_->InterfaceOf(*address));
  }
  return fmt::format("packets to {} go through {}, a TUN device with a wire in user space: {}",
                     ways, device_->name(), DescribeRule(rule));
}

void Wire::Heal(int rule) {
  {
    const std::lock_guard lock(mutex_);
    queue_.Remove(rule);
  }
  eventfd_write(wake_.get(), 1);
}

std::vector<int> Wire::TakeTouched() {
  eventfd_t count;
  eventfd_read(news_.get(), &count);
  const std::lock_guard lock(mutex_);
  return std::exchange(touched_, {});
}

void Wire::Run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the agent's
  std::vector<char> scratch(kMostPacketBytes);
  while (true) {
    std::optional<std::int64_t> due_ns;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      ReadPackets(scratch);
      SendDue();
      due_ns = queue_.due_ns();
      const std::vector<int> touched = queue_.TakeTouched();
      touched_.insert(touched_.end(), touched.begin(), touched.end());
      if (!touched.empty()) eventfd_write(news_.get(), 1);
    }
    Await(due_ns);
  }
}

void Wire::ReadPackets(std::vector<char>& scratch) {
  for (int i = 0; i < kMostReads; ++i) {
    const ssize_t n = read(device_->fd(), scratch.data(), scratch.size());
    if (n <= 0) return;
    queue_.Take({scratch.data(), static_cast<std::size_t>(n)}, MonotonicNs());
  }
}

void Wire::SendDue() {
  while (const auto departure = queue_.Next(MonotonicNs())) {
    const std::optional<IpPacket> packet = ParseIpPacket(departure->bytes);
    if (departure->back) {
      device_->Deliver(departure->bytes);
    } else if (packet) {
      device_->Send(departure->bytes, packet->to);
    }
  }
}

void Wire::Await(std::optional<std::int64_t> due_ns) {
  pollfd items[] = {{device_->fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  timespec pause{};
  if (due_ns) {
    const std::int64_t ns = std::max<std::int64_t>(0, *due_ns - MonotonicNs());
    pause = {ns / 1'000'000'000, static_cast<long>(ns % 1'000'000'000)};
  }
  ppoll(items, 2, due_ns ? &pause : nullptr, nullptr);
  eventfd_t count;
  if (items[1].revents != 0) eventfd_read(wake_.get(), &count);
}

Result<std::unique_ptr<Wire>> Wire::Start() {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<WireDevice> device, WireDevice::Open());
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Fd news(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid() || !news.valid()) {
    return EnvironmentError("no event descriptor; raise the limit on open files");
  }
  return std::unique_ptr<Wire>(new Wire(std::move(device), std::move(wake), std::move(news)));
}

}  // namespace lockstep::stress::network
