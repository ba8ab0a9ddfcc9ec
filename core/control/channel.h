// Framed messages over a stream socket: u32 length, u32 type, then `length` bytes.
//
// The same framing carries an agent's talk with its worker (a socket pair) and with the coordinator
// (a unix socket on one host, else TCP). The socket is non-blocking; nobody ever waits inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/control/codec.h"
#include "core/control/frames.h"
#include "core/verdict/lost_hosts.h"

namespace lockstep::control {

struct Frame {
  std::uint32_t type = 0;
  std::string payload;
  bool is(FrameType other) const { return type == Number(other); }
};

class Channel {
 public:
  // `most_payload_bytes`: a frame that announces more closes the channel.
  Channel(Fd fd, std::size_t most_payload_bytes);

  int fd() const { return fd_.get(); }
  // False after the peer left, broke the framing, or let more than kMostBacklogBytes pile up.
  // Frames that arrived before that can still be taken.
  bool open() const { return open_; }
  void Close(int error = 0);
  // Of a channel that closed: 0 when the peer closed it, or its owner was done with it; else why
  // (errno): reading or writing failed, a frame was too long (EPROTO), the peer took nothing
  // (ENOBUFS).
  int error() const { return error_; }
  // Both ends are on this host: nothing but the end of its peer resets it.
  bool within_host() const { return within_host_; }

  // Queues the frame and writes what the socket takes now.
  void Send(std::uint32_t type, std::string_view payload);
  void Send(FrameType type, std::string_view payload = {}) { Send(Number(type), payload); }
  template <typename F>
  void Send(const F& frame) {
    Send(F::kType, Encode(frame));
  }
  // Writes on; call when poll(2) says POLLOUT.
  void Flush();
  bool has_unsent() const { return open_ && sent_ < out_.size(); }
  // Sleeps until the socket moves on, `other` (a file descriptor) can be read, or the deadline;
  // writes and reads what goes.
  void MoveOn(Deadline deadline, int other = -1);
  // Writes until all is gone; false at the deadline or when the channel closed.
  bool FlushUntil(Deadline deadline);

  // Reads what is there, at most a few MiB a call; call when poll(2) says POLLIN.
  void Fill();
  // Reads until the socket has nothing more (bounded by the frames that a peer could have queued).
  void FillAll();
  // The next complete frame.
  std::optional<Frame> Take();

  void set_most_payload_bytes(std::size_t bytes) { most_payload_bytes_ = bytes; }
  short poll_events() const;  // what to ask poll(2) for

  static constexpr std::size_t kMostBacklogBytes = std::size_t{256} << 20;

 private:
  bool ReadOnce();

  Fd fd_;
  std::size_t most_payload_bytes_;
  bool open_ = true;
  int error_ = 0;
  int write_error_ = 0;
  bool within_host_;
  std::string out_;
  std::size_t sent_ = 0;
  std::string in_;
  std::size_t taken_ = 0;
};

// How the peer of a channel that closed was lost.
verdict::Loss LossOf(const Channel& channel);

}  // namespace lockstep::control
