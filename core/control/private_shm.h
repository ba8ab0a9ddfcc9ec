// A small /dev/shm for some workers of this host, as a container's: a mount namespace that a
// process of ours holds. It is gone with the last of them, whatever ends them; the machine's
// /dev/shm is never touched.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "core/base/status.h"

namespace lockstep::control {

// Names the process that holds the namespace, for a worker that is to enter it.
inline constexpr char kPrivateShmVariable[] = "LOCKSTEP_PRIVATE_SHM";
inline constexpr std::int64_t kPrivateShmBytes = 64 << 20;  // as Docker's default

class PrivateShm {
 public:
  // kEnvironment, one line, where mount namespaces are not permitted.
  static Result<std::unique_ptr<PrivateShm>> Create();
  ~PrivateShm();
  PrivateShm(const PrivateShm&) = delete;
  PrivateShm& operator=(const PrivateShm&) = delete;

  pid_t holder() const { return holder_; }

 private:
  explicit PrivateShm(pid_t holder) : holder_(holder) {}
  pid_t holder_;
};

// Of a worker, before it has threads: enters the namespace that the variable names, if there is
// one. Best effort: the agent looks at the result from outside.
void EnterPrivateShm();

}  // namespace lockstep::control
