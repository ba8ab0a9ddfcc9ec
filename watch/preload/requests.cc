// Requests: what their handles stand for, from the call that leaves them to the one that ends them.
#include <atomic>

#include "watch/preload/handles.h"
#include "watch/preload/mpi_names.h"
#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {
namespace {

HandleTable<65536> requests;
std::atomic<std::uint32_t> last_request{0};

RequestFacts FactsOfRequest(const Known& known) {
  return {known.number, static_cast<std::uint8_t>(known.code),
          static_cast<std::uint32_t>(known.value)};
}

}  // namespace

std::uint32_t NewRequest() { return ++last_request; }

void RememberRequest(Handle request, const RequestFacts& facts) {
  if (request == abi.request_null) return;
  if (!requests.Insert({request.Bits(), facts.send, facts.number, facts.flags})) {
    Stop(events::Stopped::kTooManyHandles);
  }
}

// Another thread may not have forgotten yet what had this handle before.
RequestFacts RequestOf(Handle request) {
  Known known;
  if (request == abi.request_null) return {};
  const bool found = several_threads ? requests.FindNewest(request.Bits(), &known)
                                     : requests.Find(request.Bits(), &known);
  return found ? FactsOfRequest(known) : RequestFacts();
}

RequestFacts ForgetRequest(Handle request, std::uint32_t number) {
  Known known;
  requests.RemoveOne(request.Bits(), number, &known);
  return FactsOfRequest(known);
}

}  // namespace lockstep::watch::preload
