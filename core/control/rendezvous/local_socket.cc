// Abstract unix sockets, whose other end the kernel names: processes of other users are not heard.
#include "core/control/rendezvous/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/base/now.h"

namespace lockstep::control::rendezvous {
namespace {

struct Name {
  sockaddr_un address{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&address); }
};

// Of "@" only the family: then bind(2) chooses.
Name NameOf(std::string_view address) {
  Name name;
  name.address.sun_family = AF_UNIX;
  name.length = offsetof(sockaddr_un, sun_path);
  if (address.size() < 2) return name;
  const std::size_t length = std::min(address.size(), sizeof name.address.sun_path);
  std::memcpy(name.address.sun_path + 1, address.data() + 1, length - 1);
  name.length += static_cast<socklen_t>(length);
  return name;
}

Status SocketError(const char* what, const std::string& address, int error) {
  return EnvironmentError("cannot {} the unix socket {}: {}", what, address, std::strerror(error));
}

}  // namespace

Result<Fd> ListenLocal(std::string& address) {
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  Name name = NameOf(address);
  if (!fd.valid() || bind(fd.get(), name.get(), name.length) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return SocketError("listen on", address, errno);
  }
  name.length = sizeof name.address;
  if (getsockname(fd.get(), name.get(), &name.length) != 0) {
    return SocketError("name", address, errno);
  }
  address = "@" + std::string(name.address.sun_path + 1,
                              name.length - offsetof(sockaddr_un, sun_path) - 1);
  return fd;
}

Result<Fd> ConnectLocal(const std::string& address, Deadline deadline, bool* refused) {
  if (refused != nullptr) *refused = false;
  Name name = NameOf(address);
  while (true) {
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return SocketError("connect to", address, errno);
    if (connect(fd.get(), name.get(), name.length) == 0) {
      if (PeerIsOurUser(fd.get())) return fd;
      errno = ECONNREFUSED;
    }
    const int error = errno;
    // EAGAIN: more wait there than its queue takes.
    if (error != EAGAIN || deadline.Passed()) {
      if (refused != nullptr) *refused = error == ECONNREFUSED;
      return SocketError("connect to", address, error);
    }
    SleepNs(1'000'000);
  }
}

bool PeerIsOurUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

}  // namespace lockstep::control::rendezvous
