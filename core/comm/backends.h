// The backends of this build, by name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/collective/pattern_memory.h"
#include "core/comm/communicator.h"
#include "core/device/device.h"
#include "core/device/kernels.h"

namespace lockstep::comm {

struct PlatformRequest {
  int local_rank = 0;       // the number of this process on its host
  bool host_access = true;  // the program touches buffers by itself, not only through ports
};

// What the ranks of a backend keep their data on and compute with.
struct Platform {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<device::Kernels> kernels;
  std::unique_ptr<collective::PatternMemory> pattern_memory =
      {};                     // where the host can't reach; else nullptr
  std::string gpu_bus = {};   // where the device sits, as "0000:3b:00.0"; empty: on the host
  std::string log_file = {};  // what the library writes of its trouble; empty: nowhere
  std::string remark = {};    // what whoever reads the figures must know; empty: nothing
};

// What any backend may need to connect a rank; each takes what it uses.
struct ConnectRequest {
  int rank = 0;
  int size = 1;
  Meeting* meeting = nullptr;     // not owned; outlives the communicator and its children
  std::string prefix = "world";   // of the meeting's keys; the same on all ranks, used once
  bool threaded_streams = false;  // streams beside the caller will be used (on inline ones: false)
  std::string host = {};          // gloo: the name or address to listen on; empty: loopback
  double timeout_seconds = 1800;  // gloo, nccl: the time limit of an operation
  device::Device* device = nullptr;     // nccl: of the Platform; outlives the communicator
  std::function<bool()> given_up = {};  // nccl: true ends the wait for ranks that do not come
};

struct Backend {
  std::string_view name;
  bool uses_launcher_mpi;  // needs the MPI identity that the launcher gave: one lifetime a launch
  // Both need no connection, so that a plan can be validated by a process that never makes one.
  const Capabilities& (*capabilities)();
  std::string (*version)();  // of the library, for the record; "unknown" where it does not tell
  // Of this process; asked once, before connecting.
  Result<Platform> (*open_platform)(const PlatformRequest& request);
  Result<std::unique_ptr<Communicator>> (*connect)(const ConnectRequest& request,
                                                   Deadline deadline);
};

// Those built in.
const std::vector<Backend>& Backends();

// The operation as the backend takes it: where the library has no non-blocking call, the blocking
// one, which then belongs on a stream beside the caller (as PyTorch runs gloo on threads).
Operation AsSupported(const Backend& backend, const Operation& operation);

// kInvalidInput for a name nobody knows, kUnsupported for a known one that this version does not
// have, kEnvironment for one whose library was absent at build time; each names `option` and the
// backends that can be chosen. The pointer stays valid.
Result<const Backend*> FindBackend(std::string_view option, std::string_view name);

}  // namespace lockstep::comm
