// Collectives over a few values of the host: flags, counts, indices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/launcher.h"

namespace lockstep::ddp {

class HostValues {
 public:
  struct Slot {
    std::vector<std::byte> host;  // begins with what is sent; after Read what was received
    std::unique_ptr<device::Buffer> device;  // holds the result; what is sent lies in place in it
    std::int64_t result_bytes = 0;
    Work work;
  };
  // A collective in flight. Its memory is used again when it is over and nobody holds the handle.
  using Handle = std::shared_ptr<Slot>;

  explicit HostValues(Launcher& launcher) : launcher_(launcher) {}

  // Sends `values` (operation.count elements of operation.type); does not wait.
  template <typename T>
  Result<Handle> Launch(const Operation& operation, const std::vector<T>& values, Purpose purpose) {
    return LaunchBytes(operation, std::as_bytes(std::span(values)), purpose);
  }
  // An all_reduce once more, over what the last one left.
  Status Relaunch(const Operation& operation, Handle& handle, Purpose purpose);
  // Later work of the compute stream comes after it.
  Status Wait(const Handle& handle) { return launcher_.Wait(handle->work); }
  // Waits and copies what came: operation.count elements (all_gather: times the ranks).
  template <typename T>
  Result<std::vector<T>> Read(const Handle& handle) {
    LOCKSTEP_RETURN_IF_ERROR(ReadBytes(handle));
    std::vector<T> values(static_cast<std::size_t>(handle->result_bytes) / sizeof(T));
    std::memcpy(values.data(), handle->host.data(), values.size() * sizeof(T));
    return values;
  }
  // Launch, then Read.
  template <typename T>
  Result<std::vector<T>> Exchange(const Operation& operation, const std::vector<T>& values,
                                  Purpose purpose) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Handle handle, Launch(operation, values, purpose));
    return Read<T>(handle);
  }

 private:
  Result<Handle> LaunchBytes(const Operation& operation, std::span<const std::byte> values,
                             Purpose purpose);
  Result<Handle> FreeSlot(std::int64_t bytes);
  Status ReadBytes(const Handle& handle);

  Launcher& launcher_;
  std::vector<Handle> slots_;
};

}  // namespace lockstep::ddp
