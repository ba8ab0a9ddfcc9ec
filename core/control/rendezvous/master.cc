// PyTorch's ranks find each other at MASTER_ADDR, so agents and watchers can, too. The port is not
// the kernel's choice: all ranks must know it beforehand. A secret that nobody set is no secret.
#include "core/control/rendezvous/master.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <string>

#include "core/control/context.h"
#include "core/control/pytorch.h"
#include "core/control/rendezvous/proof.h"

namespace lockstep::control::rendezvous {
namespace {

Result<std::string> AddressOfMaster(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &wanted, &found)) {
    return EnvironmentError(
        "MASTER_ADDR='{}' has no IPv4 address: {}; set it to a name or address of rank 0's host",
        host, gai_strerror(error));
  }
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr, text,
            sizeof text);
  freeaddrinfo(found);
  return std::string(text);
}

}  // namespace

Result<Endpoint> EndpointAtMaster(const MasterPlace& place) {
  constexpr int kMostPort = 65535;
  Endpoint endpoint;
  LOCKSTEP_ASSIGN_OR_RETURN(endpoint.address, AddressOfMaster(VariableText("MASTER_ADDR")));
  LOCKSTEP_ASSIGN_OR_RETURN(endpoint.port, PortAboveMaster(place.above));
  if (!VariableText(place.port_variable).empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int port, VariableNumber(place.port_variable, 1, kMostPort,
                                                             "set one port on all ranks"));
    endpoint.port = static_cast<std::uint16_t>(port);
  }
  // What differs from host to host (a job's name may) has no part in it.
  endpoint.secret =
      ProofOfFollower(VariableText(place.secret_variable),
                      {VariableText("MASTER_ADDR"), VariableText("MASTER_PORT")}, place.who);
  endpoint.secret.resize(kSecretBytes);
  return endpoint;
}

Result<std::unique_ptr<JoinServer>> ListenAtMaster(const MasterPlace& place,
                                                   const Endpoint& endpoint, int followers) {
  const auto& [address, port, secret] = endpoint;
  Result<std::unique_ptr<JoinServer>> server = JoinServer::Listen(address, followers, secret, port);
  // The address may be one that only leads here.
  if (!server.ok()) server = JoinServer::Listen("0.0.0.0", followers, secret, port);
  if (server.ok()) return server;
  return EnvironmentError("cannot listen on port {} of MASTER_ADDR: set {} on all ranks", port,
                          place.port_variable);
}

Status AwaitMaster(const MasterPlace& place, const Endpoint& endpoint, Signals& signals,
                   Deadline deadline) {
  constexpr int kMostPauseMs = 100;
  for (int pause_ms = 2;; pause_ms = std::min(2 * pause_ms, kMostPauseMs)) {
    const Result<Fd> reached = ConnectTo(endpoint, deadline);
    if (reached.ok()) return OkStatus();
    if (deadline.Passed()) {
      return EnvironmentError(
          "rank 0 was not found at port {} of MASTER_ADDR in time ({}); start it there, with the "
          "same MASTER_PORT, or set {} on all ranks",
          endpoint.port, reached.status().message(), place.port_variable);
    }
    pollfd item{signals.fd(), POLLIN, 0};
    poll(&item, 1, std::min(pause_ms, deadline.RemainingMs()));
    LOCKSTEP_RETURN_IF_ERROR(signals.TakeBeforeMeeting());
  }
}

}  // namespace lockstep::control::rendezvous
