// Opens NCCL with dlopen and fills the table of calls, each only from the version on that has it.
// The sizes of its Config differ by version as well. What a version supports follows from NCCL's
// release notes and source, not from trying.
#include "core/comm/nccl/library.h"

#include <dlfcn.h>

#include <cstddef>

#include "core/base/check.h"
#include "fmt/format.h"

namespace lockstep::comm::nccl {
namespace {

constexpr char kDefaultName[] = "libnccl.so.2";

// One row a call: since when the library has it. A symbol of a later version is not called even
// if it is there, because before its release it may have meant something else.
struct Symbol {
  const char* name;
  int since;
  void (*set)(Api& api, void* address);
};

template <auto kMember>
void Set(Api& api, void* address) {
  using Function = std::remove_reference_t<decltype(api.*kMember)>;
  api.*kMember = reinterpret_cast<Function>(address);
}

#define LOCKSTEP_NCCL_SYMBOL(name, major, minor, patch) \
  { "nccl" #name, VersionCode(major, minor, patch), &Set<&Api::name> }
constexpr Symbol kSymbols[] = {
    LOCKSTEP_NCCL_SYMBOL(GetUniqueId, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(GetErrorString, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(CommDestroy, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(CommCount, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(CommUserRank, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(AllReduce, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(Reduce, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(AllGather, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(ReduceScatter, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(GroupStart, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(GroupEnd, 2, 0, 1),
    LOCKSTEP_NCCL_SYMBOL(Broadcast, 2, 2, 12),
    LOCKSTEP_NCCL_SYMBOL(CommAbort, 2, 4, 2),
    LOCKSTEP_NCCL_SYMBOL(CommGetAsyncError, 2, 4, 2),
    LOCKSTEP_NCCL_SYMBOL(Send, 2, 7, 3),
    LOCKSTEP_NCCL_SYMBOL(Recv, 2, 7, 3),
    LOCKSTEP_NCCL_SYMBOL(GetLastError, 2, 13, 4),
    LOCKSTEP_NCCL_SYMBOL(CommInitRankConfig, 2, 14, 3),
    LOCKSTEP_NCCL_SYMBOL(CommFinalize, 2, 14, 3),
    LOCKSTEP_NCCL_SYMBOL(CommSplit, 2, 18, 1),
    LOCKSTEP_NCCL_SYMBOL(CommRegister, 2, 19, 1),
    LOCKSTEP_NCCL_SYMBOL(CommShrink, 2, 27, 3),
    LOCKSTEP_NCCL_SYMBOL(CommRevoke, 2, 28, 7),
};
#undef LOCKSTEP_NCCL_SYMBOL

const Symbol& SymbolOf(Feature feature) {
  static constexpr std::string_view kNames[] = {"ncclCommSplit", "ncclCommRegister",
                                                "ncclCommShrink", "ncclCommRevoke"};
  const std::string_view name = kNames[static_cast<std::size_t>(feature)];
  for (const Symbol& symbol : kSymbols) {
    if (symbol.name == name) return symbol;
  }
  LOCKSTEP_CHECK(false, "a Feature that is not in the table");
  return kSymbols[0];
}

// What a version's library knows of Config: bytes, and the version that those are of.
struct ConfigShape {
  int since;
  std::size_t bytes;
};
constexpr ConfigShape kConfigShapes[] = {
    {VersionCode(2, 28, 3), sizeof(Config)},
    {VersionCode(2, 27, 3), offsetof(Config, channels_per_net_peer)},
    {VersionCode(2, 18, 1), offsetof(Config, comm_name)},
    {VersionCode(2, 17, 1), offsetof(Config, split_share)},
    {VersionCode(2, 14, 3), offsetof(Config, min_ctas)},
};

// Where the file lies that a symbol came from.
std::string FileOf(void* symbol, const std::string& name) {
  Dl_info info{};
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : name;
}

}  // namespace

std::string VersionText(int code) {
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

std::string Library::VersionText() const { return nccl::VersionText(version_); }

Status Library::Load(void* handle) {
  Set<&Api::GetVersion>(api_, dlsym(handle, "ncclGetVersion"));
  if (api_.GetVersion == nullptr) {
    return EnvironmentError(
        "--nccl-library: {} has no ncclGetVersion, so it is not NCCL; give NCCL's libnccl.so.2",
        path_);
  }
  path_ = FileOf(reinterpret_cast<void*>(api_.GetVersion), path_);
  const Code code = api_.GetVersion(&version_);
  if (code != kSuccess) {
    return EnvironmentError(
        "--nccl-library: {} does not tell its version (ncclGetVersion: {}); choose another library",
        path_, code);
  }
  if (version_ < kOldestVersion) {
    return EnvironmentError(
        "--nccl-library: {} is NCCL {}, which has no non-blocking communicators, so a hang could "
        "not be ended; give one of {} or later",
        path_, VersionText(), nccl::VersionText(kOldestVersion));
  }
  for (const Symbol& symbol : kSymbols) {
    if (symbol.since > version_) continue;
    void* address = dlsym(handle, symbol.name);
    if (address == nullptr) {
      return EnvironmentError(
          "--nccl-library: {} says that it is NCCL {}, which has {}, but lacks it; the file is "
          "damaged or not NVIDIA's: give another",
          path_, VersionText(), symbol.name);
    }
    symbol.set(api_, address);
  }
  stand_in_ = dlsym(handle, kStandInSymbol) != nullptr;
  return OkStatus();
}

Result<std::shared_ptr<const Library>> Library::Open(const std::string& path) {
  const std::string name = path.empty() ? kDefaultName : path;
  // Lazily bound: functions of the driver that are not called may be absent.
  void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    return EnvironmentError(
        "--nccl-library: NCCL can't be loaded: {}; install libnccl2, or give the path of a "
        "libnccl.so.2 (PyTorch's lies in site-packages/nvidia/nccl/lib)",
        dlerror());
  }
  auto library = std::make_shared<Library>();
  library->path_ = name;
  LOCKSTEP_RETURN_IF_ERROR(library->Load(handle));
  return library;
}

Status Library::Has(Feature feature) const {
  const Symbol& symbol = SymbolOf(feature);
  if (version_ >= symbol.since) return OkStatus();
  return Unsupported(
      "nccl: {} came with NCCL {}, and {} is {}; choose a later library with --nccl-library",
      symbol.name, nccl::VersionText(symbol.since), path_, VersionText());
}

Status Library::Takes(const collective::Operation& operation, int compute_capability) const {
  constexpr int kSinceFloat8 = VersionCode(2, 24, 3);
  constexpr int kCopiesAnywhere = VersionCode(2, 28, 3);
  constexpr int kHopper = 90;
  const collective::Collective collective = operation.collective;
  if (collective == collective::Collective::kBarrier || !collective::IsFloat8(operation.type))
    return OkStatus();
  if (version_ < kSinceFloat8) {
    return Unsupported(
        "nccl: {} came with NCCL {}, and {} is {}; leave it out of -d, or choose a later library "
        "with --nccl-library",
        collective::NameOf(operation.type), nccl::VersionText(kSinceFloat8), path_, VersionText());
  }
  const bool copies = !collective::InfoOf(collective).reduces && version_ >= kCopiesAnywhere;
  if (compute_capability == 0 || compute_capability >= kHopper ||
      collective::IsMessage(collective) || copies) {
    return OkStatus();
  }
  return Unsupported(
      "nccl: NCCL {} takes {} in {} on GPUs of compute capability 9.0 or later, and this one has "
      "{}.{}; leave it out of -d",
      VersionText(), collective::NameOf(operation.type), collective::NameOf(collective),
      compute_capability / 10, compute_capability % 10);
}

Config Library::NewConfig() const {
  Config config;
  config.blocking = 0;
  for (const ConfigShape& shape : kConfigShapes) {
    if (version_ < shape.since) continue;
    config.size = shape.bytes;
    config.version = static_cast<unsigned>(shape.since);
    break;
  }
  return config;
}

std::string Library::Describe(std::string_view call, Code code) const {
  return fmt::format("{}: {} ({})", call, api_.GetErrorString(code), code);
}

}  // namespace lockstep::comm::nccl
