// Where the coordinator listens, and how followers on its host learn that.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/base/status.h"
#include "core/control/context.h"
#include "core/control/rendezvous/proof.h"
#include "core/control/signals.h"

namespace lockstep::control::rendezvous {

// Where an agent listens, and what it asks of who comes.
struct Endpoint {
  std::string address;     // IPv4, or "@name" of a unix socket
  std::uint16_t port = 0;  // of IPv4
  std::string secret;      // kSecretBytes of the kernel's randomness
  static void Describe(auto& fields, auto& endpoint) {
    fields(endpoint.address, endpoint.port, endpoint.secret);
    fields.Require(endpoint.secret.size() == kSecretBytes);
  }
};

// An abstract unix socket that gives the endpoint to processes of our own user on this host.
class EndpointServer {
 public:
  static Result<std::unique_ptr<EndpointServer>> Open(const LaunchContext& context,
                                                      const Endpoint& endpoint);
  int fd() const { return fd_.get(); }
  Status Serve();

 private:
  Fd fd_;
  std::string bytes_;
};
// The follower's part: asks until the coordinator is there.
Result<Endpoint> FindEndpoint(const LaunchContext& context, Signals& signals, Deadline deadline);

Result<Fd> ConnectTo(const Endpoint& endpoint, Deadline deadline, bool* refused = nullptr);

}  // namespace lockstep::control::rendezvous
