// The launcher's variables say how many watchers there are. PyTorch's own (RANK, WORLD_SIZE) count
// inside torchrun, and where no other launcher is seen.
#include "watch/run/launch.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/control/rendezvous/proof.h"

namespace lockstep::watch::run {
namespace {

constexpr int kMostPort = 65535;
constexpr int kPortsAbove = 1000;  // MASTER_PORT: where the watchers meet

std::string Text(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

Result<int> Number(const char* name, int least, int most) {
  const std::string text = Text(name);
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || value < least || value > most) {
    return InvalidInput(
        fmt::format("{}='{}' is not a number from {} to {}", name, text, least, most));
  }
  return value;
}

bool SaysPyTorch() {
  return !Text("RANK").empty() && !Text("WORLD_SIZE").empty() && !Text("MASTER_ADDR").empty();
}

Result<control::LaunchContext> FromPyTorch() {
  constexpr int kMostRanks = 1 << 20;
  control::LaunchContext context;
  context.launcher = "pytorch";
  LOCKSTEP_ASSIGN_OR_RETURN(context.size, Number("WORLD_SIZE", 1, kMostRanks));
  LOCKSTEP_ASSIGN_OR_RETURN(context.rank, Number("RANK", 0, context.size - 1));
  context.local_size = 1;
  if (!Text("LOCAL_WORLD_SIZE").empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(context.local_size, Number("LOCAL_WORLD_SIZE", 1, kMostRanks));
  }
  context.job = fmt::format("{}:{}", Text("MASTER_ADDR"), Text("MASTER_PORT"));
  return context;
}

Result<std::string> AddressOf(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &wanted, &found)) {
    return EnvironmentError(
        fmt::format("MASTER_ADDR='{}' has no IPv4 address: {}", host, gai_strerror(error)));
  }
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr, text,
            sizeof text);
  freeaddrinfo(found);
  return std::string(text);
}

// No launcher of PyTorch gives its ranks a secret, so a user may.
Result<control::rendezvous::Endpoint> AtMasterAddress() {
  control::rendezvous::Endpoint endpoint;
  LOCKSTEP_ASSIGN_OR_RETURN(endpoint.address, AddressOf(Text("MASTER_ADDR")));
  int port = 29500;  // PyTorch's own
  if (!Text("MASTER_PORT").empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(port, Number("MASTER_PORT", 1, kMostPort));
  }
  port += port + kPortsAbove <= kMostPort ? kPortsAbove : -kPortsAbove;
  if (!Text("LOCKSTEP_WATCH_PORT").empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(port, Number("LOCKSTEP_WATCH_PORT", 1, kMostPort));
  }
  endpoint.port = static_cast<std::uint16_t>(port);
  // What differs from host to host (a job's name may) has no part in it.
  endpoint.secret = control::rendezvous::ProofOfFollower(
      Text("LOCKSTEP_WATCH_SECRET"), {Text("MASTER_ADDR"), Text("MASTER_PORT")}, "watch");
  endpoint.secret.resize(control::rendezvous::kSecretBytes);
  return endpoint;
}

}  // namespace

Result<Launch> FindLaunch() {
  Launch launch;
  const bool in_torchrun = !Text("TORCHELASTIC_RUN_ID").empty() && SaysPyTorch();
  if (!in_torchrun) {
    LOCKSTEP_ASSIGN_OR_RETURN(launch.context, control::DetectLaunch());
  }
  if (in_torchrun || (launch.context.launcher == "none" && SaysPyTorch())) {
    LOCKSTEP_ASSIGN_OR_RETURN(launch.context, FromPyTorch());
  }
  if (launch.context.size == 1) return launch;
  // What is watched may be a program of ours, whose agents meet at a name of their own.
  launch.context.launcher = "watch-" + launch.context.launcher;
  launch.way = Launch::Way::kOneHost;
  if (launch.context.single_host()) return launch;
  launch.way = Launch::Way::kOverMpi;
  if (Text("MASTER_ADDR").empty()) return launch;
  launch.way = Launch::Way::kMasterAddress;
  LOCKSTEP_ASSIGN_OR_RETURN(launch.endpoint, AtMasterAddress());
  return launch;
}

}  // namespace lockstep::watch::run
