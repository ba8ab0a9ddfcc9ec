// Unix sockets for the processes of our own user on this host. Their names are abstract (unix(7)):
// they are gone with their sockets; written as "@name". The kernel tells who is at the other end.
#pragma once

#include <string>
#include <string_view>

#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/base/status.h"

namespace lockstep::control::rendezvous {

inline bool IsLocal(std::string_view address) { return address.starts_with('@'); }

// Listens on `address`; "@": the kernel chooses the name, which is then put there.
Result<Fd> ListenLocal(std::string& address);

// `refused`: set to whether nobody of our own user listens there.
Result<Fd> ConnectLocal(const std::string& address, Deadline deadline, bool* refused = nullptr);

bool PeerIsOurUser(int fd);

}  // namespace lockstep::control::rendezvous
