// The one list of backends: how each opens a device, connects a rank and says its version. MPI and
// gloo may be absent from a build; asking for them then names the missing package. NCCL is opened
// at run time, so it is always in the list.
#include "core/comm/backends.h"

#include <utility>

#include "core/comm/nccl/nccl_backend.h"
#include "core/comm/null/null_communicator.h"
#include "core/device/host/host_device.h"
#include "core/device/host/host_kernels.h"
#include "fmt/format.h"
#ifdef LOCKSTEP_HAS_GLOO
#include "core/comm/gloo/gloo_communicator.h"
#endif
#ifdef LOCKSTEP_HAS_MPI
#include "core/comm/mpi/mpi_communicator.h"
#endif

namespace lockstep::comm {
namespace {

Result<Platform> OpenHost(const PlatformRequest&) {
  return Platform{.device = std::make_unique<device::host::HostDevice>(),
                  .kernels = std::make_unique<device::host::HostKernels>()};
}

#ifdef LOCKSTEP_HAS_MPI
Result<std::unique_ptr<Communicator>> ConnectWithMpi(const ConnectRequest& request, Deadline) {
  mpi::MpiOptions options;
  options.threads =
      request.threaded_streams ? mpi::MpiThreads::kOneAtATime : mpi::MpiThreads::kCaller;
  LOCKSTEP_ASSIGN_OR_RETURN(auto communicator, mpi::ConnectMpi(options));
  if (communicator->rank() != request.rank || communicator->size() != request.size) {
    return EnvironmentError(
        "mpi: the launcher started rank {} of {}, but MPI says rank {} of {}; launch with the "
        "mpirun of the MPI that this program is linked with ({})",
        request.rank, request.size, communicator->rank(), communicator->size(), mpi::MpiVersion());
  }
  return communicator;
}
#endif

#ifdef LOCKSTEP_HAS_GLOO
Result<std::unique_ptr<Communicator>> ConnectWithGloo(const ConnectRequest& request,
                                                      Deadline deadline) {
  if (request.meeting == nullptr) return InvalidInput("gloo: ranks connect through a meeting");
  gloo::GlooOptions options{.host = request.host, .timeout_seconds = request.timeout_seconds};
  return gloo::ConnectGloo(request.rank, request.size, *request.meeting, request.prefix, options,
                           deadline);
}
#endif

Result<std::unique_ptr<Communicator>> ConnectWithNull(const ConnectRequest& request, Deadline) {
  return null::ConnectNull(request.rank, request.size, request.meeting);
}

Result<Platform> OpenNcclPlatform(const PlatformRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(nccl::NcclPlatform opened,
                            nccl::OpenNccl(request.local_rank, request.host_access));
  LOCKSTEP_ASSIGN_OR_RETURN(Platform platform, OpenHost(request));
  platform.remark = std::move(opened.remark);
  platform.gpu_bus = std::move(opened.gpu_bus);
  platform.log_file = std::move(opened.log_file);
  if (opened.device == nullptr) return platform;
  platform.device = std::move(opened.device);
  platform.kernels = std::move(opened.kernels);
  platform.pattern_memory = std::move(opened.pattern_memory);
  return platform;
}

Result<std::unique_ptr<Communicator>> ConnectWithNccl(const ConnectRequest& request,
                                                      Deadline deadline) {
  if (request.meeting == nullptr || request.device == nullptr) {
    return InvalidInput("nccl: ranks connect through a meeting, and on a device");
  }
  nccl::NcclOptions options = nccl::NcclOptionsFromEnvironment();
  options.operation_seconds = request.timeout_seconds;
  options.given_up = request.given_up;
  LOCKSTEP_ASSIGN_OR_RETURN(auto communicator,
                            nccl::ConnectNccl(request.rank, request.size, *request.meeting,
                                              request.prefix, *request.device, options, deadline));
  return communicator;
}

std::string Choices() {
  std::string names;
  for (const Backend& backend : Backends()) names += fmt::format(" {}", backend.name);
  return names;
}

// Libraries that a build can lack, and the Debian packages that bring them.
constexpr std::pair<std::string_view, std::string_view> kOptional[] = {{"mpi", "libopenmpi-dev"},
                                                                       {"gloo", "libgloo-dev"}};
constexpr std::string_view kKnownElsewhere[] = {"sim"};

}  // namespace

const std::vector<Backend>& Backends() {
  static const std::vector<Backend> backends = {
#ifdef LOCKSTEP_HAS_MPI
      {"mpi", true, &mpi::MpiCapabilities, &mpi::MpiVersion, &OpenHost, &ConnectWithMpi},
#endif
#ifdef LOCKSTEP_HAS_GLOO
      {"gloo", false, &gloo::GlooCapabilities, &gloo::GlooVersion, &OpenHost, &ConnectWithGloo},
#endif
      {"nccl", false, &nccl::NcclBackendCapabilities, &nccl::NcclVersion, &OpenNcclPlatform,
       &ConnectWithNccl},
      {"null", false, &null::NullCapabilities, [] { return std::string("built in"); }, &OpenHost,
       &ConnectWithNull},
  };
  return backends;
}

Result<const Backend*> FindBackend(std::string_view option, std::string_view name) {
  for (const Backend& backend : Backends()) {
    if (backend.name == name) return &backend;
  }
  for (const auto& [optional, package] : kOptional) {
    if (optional != name) continue;
    return EnvironmentError(
        "{}: this program was built without {}; install {} and build again, or choose one of:{}",
        option, name, package, Choices());
  }
  for (const std::string_view known : kKnownElsewhere) {
    if (known != name) continue;
    return Unsupported("{}: this version has no backend {}; choose one of:{}", option, name,
                       Choices());
  }
  return InvalidInput("{}: '{}' is not a backend; choose one of:{}", option, name, Choices());
}

Operation AsSupported(const Backend& backend, const Operation& operation) {
  if (backend.capabilities().supports(operation).ok()) return operation;
  Operation blocking = operation;
  blocking.blocking = Blocking::kBlocking;
  return blocking;
}

}  // namespace lockstep::comm
