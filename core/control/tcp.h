// TCP as the control plane wants it.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/base/status.h"

namespace lockstep::control {

// No delay; a peer whose host died is noticed within `lost_seconds` or a few seconds more, whether
// we talk or listen (keepalive; TCP_USER_TIMEOUT, RFC 5482). May be called again.
void SetTcpOptions(int fd, double lost_seconds = 20);

// A peer that answers, but takes nothing, is kept for as long as it likes: since Linux 5.11
// TCP_USER_TIMEOUT ends such a connection, too. A host that died while bytes were on their way to
// it is then noticed after tcp_retries2, some 15 minutes.
void BearSlowPeer(int fd);

// The peer's kernel has acknowledged all that was sent to it: host and way are there.
bool AllAcknowledged(int fd);

// Listens on this one IPv4 address. `port`: 0 for the kernel's choice, which is then put there.
Result<Fd> ListenTcp(const std::string& address, std::uint16_t& port);

// `refused`: set to whether the host was reached, but nobody listens there.
Result<Fd> ConnectTcp(const std::string& address, std::uint16_t port, Deadline deadline,
                      bool* refused = nullptr);

}  // namespace lockstep::control
