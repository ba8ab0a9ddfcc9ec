// Requests: what their handles stand for, from the call that leaves them to the one that ends them.
#include <atomic>

#include "watch/preload/handles.h"
#include "watch/preload/mpi_names.h"
#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {
namespace {

HandleTable<65536> requests;
std::atomic<std::uint32_t> last_request{0};

}  // namespace

std::uint32_t NewRequest() { return ++last_request; }

void RememberRequest(Handle request, std::uint32_t number, std::uint8_t flags) {
  if (request == abi.request_null) return;
  if (!requests.Insert({request.Bits(), 0, number, flags})) {
    Stop(events::Stopped::kTooManyHandles);
  }
}

// Another thread may not have forgotten yet what had this handle before.
RequestFacts RequestOf(Handle request) {
  Known known;
  if (request == abi.request_null) return {};
  const bool found = several_threads ? requests.FindNewest(request.Bits(), &known)
                                     : requests.Find(request.Bits(), &known);
  if (!found) return {};
  return {known.number, static_cast<std::uint8_t>(known.code)};
}

std::uint32_t ForgetRequest(Handle request, std::uint32_t number) {
  Known known;
  requests.RemoveOne(request.Bits(), number, &known);
  return known.number;
}

}  // namespace lockstep::watch::preload
