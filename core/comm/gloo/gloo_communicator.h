// gloo, the library behind PyTorch's DistributedDataParallel on CPUs, as a communicator.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/comm/communicator.h"
#include "core/comm/narrow_reduction.h"

namespace lockstep::comm::gloo {

struct GlooOptions {
  // The name or address this rank listens on. Empty: the interface $GLOO_SOCKET_IFNAME, or the host
  // $LOCKSTEP_GLOO_HOST, or 127.0.0.1 (one host).
  std::string host;
  // gloo's own limit of an operation (PyTorch's default); past it the operation is kSystemFailed.
  double timeout_seconds = 1800;
};

// Blocking operations only: gloo has no non-blocking calls (PyTorch runs it on a thread, as a FIFO
// stream does). No reduce_scatter: gloo's is an old interface that copies through buffers of its
// own, and PyTorch does not offer it either. all_reduce is gloo's default, the ring. An operation
// of 0 elements returns at once. Abort, from any thread, fails the call in which this rank waits
// and what its peers wait for from it; communicators split off are aborted by themselves.
const Capabilities& GlooCapabilities();

// The version in gloo's headers, and that of the installed Debian package where there is one.
std::string GlooVersion();

// Collective over `size` ranks. `prefix` is of the meeting's keys: the same on all ranks, and new
// for every connection. The meeting outlives the communicator and its children.
Result<std::unique_ptr<Communicator>> ConnectGloo(int rank, int size, Meeting& meeting,
                                                  const std::string& prefix,
                                                  const GlooOptions& options, Deadline deadline);

using ReduceFunction = void (*)(void* out, const void* a, const void* b, std::size_t count);

// gloo's own functions, which are what PyTorch uses; ours for bf16 and the floats of 8 bits, which
// gloo does not have, and for f16, which it gets wrong.
ReduceFunction ReduceFunctionFor(DataType type, Reduction reduction);

}  // namespace lockstep::comm::gloo
