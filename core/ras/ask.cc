// The protocol is lines of text: NCCL's src/ras/client_support.cc. Every wait is bounded, because a
// service of a hung process accepts connections and says nothing.
#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/ras/status.h"

namespace lockstep::ras {
namespace {

constexpr timeval kSilence = {15, 0};  // RAS itself gives a rank 5 s, and the answer 5 s more
constexpr double kMostSeconds = 120;
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

Status Silent(const std::string& address, const std::string& why) {
  return EnvironmentError(
      "--ras {}: {}; is the job there, is NCCL 2.24 or newer, and what is NCCL_RAS_ADDR?", address,
      why);
}

struct HostAndPort {
  std::string host, port;
};

HostAndPort Split(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const std::size_t bracket = address.rfind(']');
  const bool has_port = colon != address.npos && (bracket == address.npos || bracket < colon);
  std::string host = address.substr(0, has_port ? colon : address.npos);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, has_port ? address.substr(colon + 1) : kDefaultPort};
}

Result<Fd> Connect(const std::string& address) {
  const HostAndPort to = Split(address);
  const bool number = !to.port.empty() && to.port.find_first_not_of("0123456789") == to.port.npos;
  if (number && (to.port.size() > 5 || std::stoi(to.port) > 65535)) {
    return InvalidInput("--ras {}: {} is no port; write HOST:PORT with a port up to 65535", address,
                        to.port);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(to.host.c_str(), to.port.c_str(), &hints, &found)) {
    return Silent(address, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  int reason = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Fd fd(socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (!fd.valid()) continue;
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kSilence, sizeof kSilence);
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kSilence, sizeof kSilence);
    if (connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) return fd;
    reason = errno;
  }
  return Silent(address, std::strerror(reason));
}

class Talk {
 public:
  Talk(Fd fd, const std::string& address) : fd_(std::move(fd)), address_(address) {}

  Status Say(std::string_view line) {
    if (send(fd_.get(), line.data(), line.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(line.size())) {
      return OkStatus();
    }
    return Silent(address_, std::strerror(errno));
  }
  Result<std::string> Line() {
    std::size_t end = 0;
    while ((end = heard_.find('\n')) == heard_.npos) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool more, Hear());
      if (!more) return Silent(address_, "it closed the connection");
    }
    const std::string line = heard_.substr(0, end);
    heard_.erase(0, end + 1);
    return line;
  }
  Result<std::string> Rest() {
    while (true) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool more, Hear());
      if (!more) return heard_;
    }
  }

 private:
  Result<bool> Hear() {
    char bytes[1 << 14];
    const ssize_t n = recv(fd_.get(), bytes, sizeof bytes, 0);
    if (n == 0) return false;
    if (n < 0) {
      return Silent(address_, errno == EAGAIN ? "no answer" : std::strerror(errno));
    }
    heard_.append(bytes, static_cast<std::size_t>(n));
    if (heard_.size() > kMostBytes || until_.Passed()) return Silent(address_, "it says too much");
    return true;
  }

  Fd fd_;
  const std::string& address_;
  std::string heard_;
  const Deadline until_ = Deadline::AfterSeconds(kMostSeconds);
};

}  // namespace

Result<std::string> Ask(const std::string& address) {
  LOCKSTEP_ASSIGN_OR_RETURN(Fd fd, Connect(address));
  Talk talk(std::move(fd), address);
  LOCKSTEP_RETURN_IF_ERROR(talk.Say("CLIENT PROTOCOL 2\n"));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string hello, talk.Line());
  if (!hello.starts_with("SERVER PROTOCOL ")) return Silent(address, "it is not NCCL's RAS");
  LOCKSTEP_RETURN_IF_ERROR(talk.Say("SET FORMAT json\n"));
  LOCKSTEP_RETURN_IF_ERROR(talk.Line().status());  // "OK", or an error before NCCL 2.28.7
  LOCKSTEP_RETURN_IF_ERROR(talk.Say("VERBOSE STATUS\n"));
  return talk.Rest();
}

}  // namespace lockstep::ras
