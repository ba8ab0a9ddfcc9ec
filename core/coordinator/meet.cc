// On one host a unix socket named after the job is found by all. Across hosts MPI carries the
// endpoint, or PyTorch's variables name a host where rank 0 listens. Every agent listens itself,
// too: it may have to take the coordinator's place.
#include "core/coordinator/meet.h"

#include <poll.h>

#include <utility>

#include "core/control/context.h"
#include "core/control/machine.h"
#include "core/control/open_files.h"
#include "core/control/pytorch.h"
#include "core/control/rendezvous/endpoint.h"
#include "core/control/rendezvous/exchange.h"
#include "core/control/rendezvous/master.h"

namespace lockstep::coordinator {
namespace {

// From rank 0's message to when its launcher has told the others to end, on a busy machine.
constexpr double kMostToldSeconds = 10;
constexpr int kAskAgainMs = 20;

enum class Way { kOnThisHost, kOverMpi, kAtMaster };

Result<Way> WayToMeet(const LaunchContext& context, const CoordinatorOptions& options) {
  if (options.workers_own_mpi && control::HasMasterAddress(context)) {
    return InvalidInput(
        "the launcher ({}) gives its ranks no MPI: start with mpirun or srun, or choose "
        "--backend=gloo or nccl",
        context.launcher);
  }
  const std::string wish = control::VariableText("LOCKSTEP_MEET");
  if (!wish.empty() && wish != "mpi") {
    return InvalidInput("LOCKSTEP_MEET='{}' is not known; set it to 'mpi', or unset it", wish);
  }
  if (wish.empty() && context.single_host()) return Way::kOnThisHost;
  if (!control::HasMasterAddress(context)) return Way::kOverMpi;
  if (wish.empty()) return Way::kAtMaster;
  return InvalidInput(
      "LOCKSTEP_MEET='mpi' needs a launcher of MPI; PyTorch's variables name none; unset it");
}

// An MPI that does not know its launcher makes a world of one rank of every process.
Status CheckWorld(const LaunchContext& context, std::size_t ranks) {
  if (ranks == static_cast<std::size_t>(context.size)) return OkStatus();
  return EnvironmentError(
      "the launcher ({}) started {} ranks, but the MPI that this program is linked with finds {}: "
      "launch with its own mpirun or mpiexec, or with srun --mpi=pmix (Open MPI) or --mpi=pmi2 "
      "(MPICH)",
      context.launcher, context.size, ranks);
}

// Gathers every rank's part through a process that calls MPI: the worker, if MPI is its business
// anyway, else a child that only does this.
Result<std::vector<std::string>> Exchange(const LaunchContext& context,
                                          const CoordinatorOptions& options,
                                          agent::RankAgent& agent, const std::string& part,
                                          control::Signals& signals, Deadline deadline) {
  agent::Child* caller = nullptr;
  std::unique_ptr<agent::Child> child;
  if (options.workers_own_mpi) {
    LOCKSTEP_ASSIGN_OR_RETURN(caller, agent.StartExchangingWorker());
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(child,
                              agent::Child::Spawn({.kind = control::ChildRole::Kind::kExchange,
                                                   .rank = context.rank,
                                                   .size = context.size,
                                                   .local_rank = context.local_rank}));
    caller = child.get();
  }
  const bool on_threads = options.workers_own_mpi && options.mpi_on_threads;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<std::string> parts,
      control::rendezvous::AskForExchange(caller->channel(), part, on_threads, signals, deadline));
  if (child != nullptr) {
    // It finalizes MPI together with the others.
    child->AwaitExit(deadline);
    child->Poll();
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckWorld(context, parts.size()));
  return parts;
}

// Where an agent can be reached: on one host through a unix socket.
Result<std::string> OwnAddress(const LaunchContext& context) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string address, ListenAddress(context));
  return address.empty() ? "@" : address;
}

Result<control::rendezvous::Endpoint> EndpointIn(const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (std::optional<control::rendezvous::Endpoint> endpoint =
            control::Decode<control::rendezvous::Endpoint>(part)) {
      return *std::move(endpoint);
    }
  }
  return EnvironmentError("rank 0 did not say where it listens; see its messages");
}

Result<std::unique_ptr<control::rendezvous::JoinServer>> ListenForAll(int followers) {
  using namespace control::rendezvous;
  LOCKSTEP_ASSIGN_OR_RETURN(const Endpoint endpoint, EndpointAtMaster(kAgents));
  return ListenAtMaster(kAgents, endpoint, followers);
}

Result<control::rendezvous::Endpoint> FindCoordinator(Way way, const LaunchContext& context,
                                                      const CoordinatorOptions& options,
                                                      agent::RankAgent& agent,
                                                      control::Signals& signals,
                                                      Deadline deadline) {
  using namespace control::rendezvous;
  if (way == Way::kAtMaster) {
    LOCKSTEP_ASSIGN_OR_RETURN(Endpoint endpoint, EndpointAtMaster(kAgents));
    LOCKSTEP_RETURN_IF_ERROR(AwaitMaster(kAgents, endpoint, signals, deadline));
    return endpoint;
  }
  if (way == Way::kOnThisHost) return FindEndpoint(context, signals, deadline);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> parts,
                            Exchange(context, options, agent, {}, signals, deadline));
  return EndpointIn(parts);
}

}  // namespace

Result<std::vector<control::rendezvous::JoinRequest>> MeetFollowers(
    const LaunchContext& context, const CoordinatorOptions& options, agent::RankAgent& agent,
    control::Signals& signals) {
  const Deadline deadline = Deadline::AfterSeconds(options.connect_deadline_seconds);
  LOCKSTEP_RETURN_IF_ERROR(control::CheckOpenFiles(context.rank, context.size - 1));
  LOCKSTEP_ASSIGN_OR_RETURN(const Way way, WayToMeet(context, options));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string address, OwnAddress(context));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<control::rendezvous::JoinServer> server,
      way == Way::kAtMaster ? ListenForAll(context.size - 1)
                            : control::rendezvous::JoinServer::Listen(address, context.size - 1));
  std::unique_ptr<control::rendezvous::EndpointServer> endpoints;
  if (way == Way::kOverMpi) {
    const std::string part = control::Encode(server->endpoint());
    LOCKSTEP_RETURN_IF_ERROR(Exchange(context, options, agent, part, signals, deadline).status());
  } else if (way == Way::kOnThisHost && context.size > 1) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        endpoints, control::rendezvous::EndpointServer::Open(context, server->endpoint()));
  }
  auto met = server->Gather(endpoints.get(), signals, deadline);
  if (met.ok() || context.launcher != control::kByHand ||
      met.status().code() != StatusCode::kEnvironment) {
    return met;
  }
  // A shell may have them of something else.
  return EnvironmentError(met.status().message() +
                          "; RANK, WORLD_SIZE and MASTER_ADDR say that there are such ranks: unset "
                          "them for a launch of one");
}

Result<Joined> MeetCoordinator(const LaunchContext& context, const CoordinatorOptions& options,
                               agent::RankAgent& agent, control::Signals& signals) {
  const Deadline deadline = Deadline::AfterSeconds(options.connect_deadline_seconds);
  LOCKSTEP_RETURN_IF_ERROR(control::CheckOpenFiles(context.rank, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(const Way way, WayToMeet(context, options));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string address, OwnAddress(context));
  LOCKSTEP_ASSIGN_OR_RETURN(const control::rendezvous::Endpoint endpoint,
                            FindCoordinator(way, context, options, agent, signals, deadline));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<control::rendezvous::JoinServer> server,
      control::rendezvous::JoinServer::Listen(address, context.size - 1, endpoint.secret));
  const control::Contact own = {
      context.rank, {}, server->endpoint().address, server->endpoint().port};
  LOCKSTEP_ASSIGN_OR_RETURN(
      control::Channel control,
      control::rendezvous::Join(endpoint, control::DescribeAgent(context.rank), &signals, deadline,
                                own));
  return Joined{std::move(control), std::move(server), endpoint.secret};
}

bool MistakeIsOwn(const LaunchContext& context) {
  control::Signals signals;
  const Deadline deadline = Deadline::AfterSeconds(kMostToldSeconds);
  while (!deadline.Passed()) {
    const control::Signals::Arrived arrived = signals.Take();
    if (arrived.end != 0 || arrived.warned) return false;
    const Deadline at_once = Deadline::AfterNs(0);
    if (context.single_host() &&
        control::rendezvous::FindEndpoint(context, signals, at_once).ok()) {
      return true;
    }
    pollfd item{signals.fd(), POLLIN, 0};
    poll(&item, 1, kAskAgainMs);
  }
  return true;
}

}  // namespace lockstep::coordinator
