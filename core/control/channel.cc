// Frames over a non-blocking socket, with a bound on what waits in each direction. How a connection
// ended (closed, reset, cut off) is kept, because it is evidence.
#include "core/control/channel.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace lockstep::control {
namespace {

constexpr std::size_t kFrameHeaderBytes = 8;
constexpr std::size_t kReadBytes = 256 << 10;

// A connection to an address of this host comes from the same one.
bool IsWithinHost(int fd) {
  sockaddr_in ours{}, theirs{};
  socklen_t length = sizeof ours, their_length = sizeof theirs;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&ours), &length) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &their_length) != 0) {
    return false;
  }
  if (ours.sin_family == AF_UNIX) return true;
  return ours.sin_family == AF_INET && ours.sin_addr.s_addr == theirs.sin_addr.s_addr;
}

}  // namespace

Channel::Channel(Fd fd, std::size_t most_payload_bytes)
    : fd_(std::move(fd)),
      most_payload_bytes_(most_payload_bytes),
      within_host_(IsWithinHost(fd_.get())) {
  const int flags = fcntl(fd_.get(), F_GETFL);
  LOCKSTEP_CHECK(flags >= 0 && fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) == 0,
                 std::strerror(errno));
}

void Channel::Close(int error) {
  error_ = error;
  open_ = false;
  fd_.Reset();
}

short Channel::poll_events() const {
  return static_cast<short>(POLLIN | (has_unsent() ? POLLOUT : 0));
}

void Channel::Send(std::uint32_t type, std::string_view payload) {
  if (!open_) return;
  if (out_.size() - sent_ + payload.size() > kMostBacklogBytes) {
    Close(ENOBUFS);
    return;
  }
  const std::uint32_t header[2] = {static_cast<std::uint32_t>(payload.size()), type};
  out_.append(reinterpret_cast<const char*>(header), sizeof header);
  out_.append(payload);
  Flush();
}

void Channel::Flush() {
  while (open_ && sent_ < out_.size()) {
    const ssize_t n =
        send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      if (errno == EINTR) continue;
      // What the peer sent before it left is still to be read: only Fill() may close then.
      if (errno != EAGAIN) sent_ = out_.size();
      // The kernel tells an error once; who reads then is told of an end.
      if (errno != EAGAIN && errno != EPIPE) write_error_ = errno;
      break;
    }
    sent_ += static_cast<std::size_t>(n);
  }
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  }
}

void Channel::MoveOn(Deadline deadline, int other) {
  pollfd items[] = {{fd_.get(), poll_events(), 0}, {other, POLLIN, 0}};
  poll(items, 2, deadline.RemainingMs());
  Flush();
  Fill();
}

bool Channel::FlushUntil(Deadline deadline) {
  Flush();
  while (has_unsent()) {
    if (deadline.Passed()) return false;
    pollfd item{fd_.get(), POLLOUT, 0};
    poll(&item, 1, deadline.RemainingMs());
    Flush();
  }
  return open_;
}

bool Channel::ReadOnce() {
  if (!open_) return false;
  // Read elsewhere first: growing a string clears it, which takes longer than a small frame.
  static thread_local std::array<char, kReadBytes> bytes;
  ssize_t n;
  do {
    n = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n > 0) in_.append(bytes.data(), static_cast<std::size_t>(n));
  if (n == 0 || (n < 0 && errno != EAGAIN)) Close(n == 0 ? write_error_ : errno);
  return n > 0;
}

void Channel::Fill() {
  for (int i = 0; i < 16 && ReadOnce(); ++i) {
  }
}

void Channel::FillAll() {
  // A peer's socket buffer is a few MiB at most; 4096 reads are 1 GiB.
  for (int i = 0; i < 4096 && ReadOnce(); ++i) {
  }
}

std::optional<Frame> Channel::Take() {
  const std::size_t there = in_.size() - taken_;
  std::uint32_t header[2];
  if (there >= kFrameHeaderBytes) {
    std::memcpy(header, in_.data() + taken_, kFrameHeaderBytes);
    if (header[0] > most_payload_bytes_) {
      in_.clear();
      taken_ = 0;
      Close(EPROTO);
      return std::nullopt;
    }
  }
  if (there < kFrameHeaderBytes || there - kFrameHeaderBytes < header[0]) {
    in_.erase(0, taken_);
    taken_ = 0;
    return std::nullopt;
  }
  Frame frame{header[1], in_.substr(taken_ + kFrameHeaderBytes, header[0])};
  taken_ += kFrameHeaderBytes + header[0];
  return frame;
}

verdict::Loss LossOf(const Channel& channel) {
  const int error = channel.error();
  // EPIPE: it was reset after the other end had closed it.
  if (error == 0 || error == EPIPE) return verdict::Loss::kClosed;
  if (error != ECONNRESET) return verdict::Loss::kCutOff;
  return channel.within_host() ? verdict::Loss::kClosed : verdict::Loss::kReset;
}

}  // namespace lockstep::control
