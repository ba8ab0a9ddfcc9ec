// The stand-in library's calls. Built once for each version that it pretends to be
// (LOCKSTEP_FAKE_VERSION, NCCL's code of it), with the calls that this version has.
#include <net/if.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/comm/nccl/abi.h"
#include "core/comm/nccl/testing/fake_comm.h"

namespace {

using lockstep::comm::nccl::Code;
using lockstep::comm::nccl::Comm;
using lockstep::comm::nccl::Config;
using lockstep::comm::nccl::FakeComm;
using lockstep::comm::nccl::FakeFault;
using lockstep::comm::nccl::FakeOperation;
using lockstep::comm::nccl::FakeWorld;
using lockstep::comm::nccl::StandInStream;
using lockstep::comm::nccl::UniqueId;
using lockstep::comm::nccl::VersionCode;
using lockstep::comm::nccl::WorldAddress;
namespace codes = lockstep::comm::nccl;

constexpr int kVersion = LOCKSTEP_FAKE_VERSION;

FakeComm& Fake(Comm comm) { return *static_cast<FakeComm*>(comm); }

thread_local int group_depth = 0;
// The sends of a group begin first, and receives do not wait for them: else a ring would hang.
thread_local std::vector<std::function<void()>> group_sends, group_work;

// Faults of calls that have no communicator.
Code FaultOf(const std::string& call, int rank) {
  for (const FakeFault& fault : lockstep::comm::nccl::FakeFaultsFromEnvironment()) {
    if (fault.call != call || (fault.rank >= 0 && fault.rank != rank)) continue;
    lockstep::comm::nccl::FakeWarn("fake: " + call + " " + fault.action);
    if (fault.action == "error") return fault.value;
    if (fault.action == "hang" || fault.action == "freeze") {
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
  return codes::kSuccess;
}

// What the version's own ncclConfig_t has.
std::size_t ConfigBytes() {
  if (kVersion >= lockstep::comm::nccl::VersionCode(2, 28, 0)) return 80;
  if (kVersion >= lockstep::comm::nccl::VersionCode(2, 27, 0)) return 72;
  if (kVersion >= lockstep::comm::nccl::VersionCode(2, 18, 0)) return 48;
  if (kVersion >= lockstep::comm::nccl::VersionCode(2, 17, 0)) return 40;
  return 24;
}

bool Understands(const Config* config) {
  return config != nullptr && config->magic == codes::kConfigMagic &&
         config->size == ConfigBytes() && config->blocking == 0 &&
         static_cast<int>(config->version) <= kVersion;
}

Code Call(const FakeOperation& operation, Comm comm) {
  if (operation.type > codes::kBf16 && kVersion < lockstep::comm::nccl::VersionCode(2, 24, 3)) {
    lockstep::comm::nccl::FakeWarn("fake: a type that this version does not know");
    return codes::kInvalidArgument;
  }
  const FakeComm::Effect effect = Fake(comm).OnCall(operation.call);
  if (effect.code != codes::kSuccess) return effect.code;
  if (operation.count == 0) return codes::kSuccess;
  if (group_depth > 0) {
    const bool sends = operation.call == "ncclSend";
    (sends ? group_sends : group_work).push_back([=] {
      Fake(comm).Enqueue(operation, effect, sends);
    });
  } else {
    Fake(comm).Enqueue(operation, effect);
  }
  return effect.action == "slow" ? codes::kInProgress : codes::kSuccess;
}

FakeOperation Operation(const char* call, const void* send, void* recv, std::size_t count, int type,
                        void* stream) {
  FakeOperation operation;
  operation.call = call;
  operation.send = static_cast<const std::byte*>(send);
  operation.recv = static_cast<std::byte*>(recv);
  operation.count = count;
  operation.type = type;
  operation.stream = static_cast<StandInStream*>(stream);
  return operation;
}

// A new communicator of the ranks of one color; agreed on over the parent's
// memory. Runs on the parent's thread. Unused in versions without ncclCommSplit.
struct Vote {
  int color = -1;
  int key = 0;
  WorldAddress address;
};

[[maybe_unused]] void MakeChild(FakeComm& parent, const Vote& mine, Comm* child) {
  FakeWorld& world = parent.world();
  std::memcpy(world.Slot(parent.rank()), &mine, sizeof(mine));
  if (!world.Barrier()) return;
  int rank = 0;
  int size = 0;
  WorldAddress address;
  std::pair<int, int> first{0, -1};
  for (int peer = 0; peer < parent.size(); ++peer) {
    Vote vote;
    std::memcpy(&vote, world.Slot(peer), sizeof(vote));
    if (vote.color != mine.color) continue;
    const std::pair<int, int> place{vote.key, peer};
    if (size++ == 0 || place < first) {
      first = place;
      address = vote.address;
    }
    if (place < std::pair<int, int>{mine.key, parent.rank()}) ++rank;
  }
  if (!world.Barrier()) return;
  if (mine.color < 0) return;
  *child = FakeComm::Make(address, rank, size);
  if (*child == nullptr) parent.Fail(codes::kSystemError);
}

// NCCL_SOCKET_IFNAME: the beginning of a name, and there has to be such an interface.
bool FindsInterface() {
  const char* const wanted = std::getenv("NCCL_SOCKET_IFNAME");
  if (wanted == nullptr) return true;
  struct if_nameindex* const all = if_nameindex();
  bool found = false;
  for (struct if_nameindex* one = all; one != nullptr && one->if_name != nullptr; ++one) {
    found = found || std::string_view(one->if_name).starts_with(wanted);
  }
  if (all != nullptr) if_freenameindex(all);
  return found;
}

// NCCL_NET: none but NCCL's own are known here.
bool FindsNetwork() {
  const char* const wanted = std::getenv("NCCL_NET");
  return wanted == nullptr || std::string_view(wanted) == "Socket" ||
         std::string_view(wanted) == "IB";
}

#if LOCKSTEP_FAKE_VERSION >= 22703
Code AwaitChild(Comm* child) {
  while (std::atomic_ref<Comm>(*child).load() == nullptr) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return codes::kSuccess;
}
#endif

}  // namespace

extern "C" {

int lockstep_nccl_stand_in = 1;

Code ncclGetVersion(int* version) {
  *version = kVersion;
  return FaultOf("ncclGetVersion", -1);
}

const char* ncclGetErrorString(Code code) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "unhandled system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return code >= 0 && code <= 7 ? kTexts[code] : "unknown result code";
}

const char* ncclGetLastError(Comm) { return lockstep::comm::nccl::FakeLastError(); }

Code ncclGetUniqueId(UniqueId* id) {
  const Code fault = FaultOf("ncclGetUniqueId", 0);
  if (fault != codes::kSuccess) return fault;
  const WorldAddress address = FakeWorld::Create();
  if (address.fd < 0) return codes::kSystemError;
  std::memset(id->internal, 0, sizeof(id->internal));
  std::memcpy(id->internal, &address, sizeof(address));
  return codes::kSuccess;
}

Code ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  const Code fault = FaultOf("ncclCommInitRankConfig", rank);
  if (fault != codes::kSuccess) return fault;
  if (!Understands(config)) {
    lockstep::comm::nccl::FakeWarn("fake: a configuration that this version does not understand");
    return codes::kInvalidUsage;
  }
  if (!FindsInterface() || !FindsNetwork()) {
    lockstep::comm::nccl::FakeWarn("fake: no such interface or network");
    return codes::kInvalidUsage;
  }
  if (ranks > FakeWorld::kMostRanks) return codes::kInvalidUsage;
  WorldAddress address;
  std::memcpy(&address, id.internal, sizeof(address));
  FakeComm* const made = FakeComm::Make(address, rank, ranks);
  if (made == nullptr) return codes::kSystemError;
  *comm = made;
  const FakeComm::Effect effect = made->OnCall("init");
  return effect.code == codes::kSuccess ? codes::kInProgress : effect.code;
}

Code ncclCommFinalize(Comm comm) {
  const FakeComm::Effect effect = Fake(comm).OnCall("ncclCommFinalize");
  if (effect.code != codes::kSuccess) return effect.code;
  Fake(comm).Begin([] {});
  return codes::kInProgress;
}

Code ncclCommDestroy(Comm comm) {
  const FakeComm::Effect effect = Fake(comm).OnCall("ncclCommDestroy");
  if (effect.code != codes::kSuccess) return effect.code;
  delete static_cast<FakeComm*>(comm);
  return codes::kSuccess;
}

Code ncclCommAbort(Comm comm) {
  const FakeComm::Effect effect = Fake(comm).OnCall("ncclCommAbort");
  Fake(comm).Abort();
  if (effect.code != codes::kSuccess) return effect.code;
  Fake(comm).End();
  // Its memory stays: a call that was inside, which this one ends, still looks at it.
  return codes::kSuccess;
}

Code ncclCommGetAsyncError(Comm comm, Code* error) {
  const FakeComm::Effect effect = Fake(comm).OnCall("ncclCommGetAsyncError");
  if (effect.code != codes::kSuccess) return effect.code;
  *error = Fake(comm).state();
  return codes::kSuccess;
}

Code ncclCommCount(Comm comm, int* count) { return *count = Fake(comm).size(), codes::kSuccess; }
Code ncclCommUserRank(Comm comm, int* rank) { return *rank = Fake(comm).rank(), codes::kSuccess; }

Code ncclAllReduce(const void* send, void* recv, std::size_t count, int type, int reduction,
                   Comm comm, void* stream) {
  FakeOperation operation = Operation("ncclAllReduce", send, recv, count, type, stream);
  operation.reduction = reduction;
  return Call(operation, comm);
}

Code ncclBroadcast(const void* send, void* recv, std::size_t count, int type, int root, Comm comm,
                   void* stream) {
  FakeOperation operation = Operation("ncclBroadcast", send, recv, count, type, stream);
  operation.root = root;
  return Call(operation, comm);
}

Code ncclReduce(const void* send, void* recv, std::size_t count, int type, int reduction, int root,
                Comm comm, void* stream) {
  FakeOperation operation = Operation("ncclReduce", send, recv, count, type, stream);
  operation.reduction = reduction;
  operation.root = root;
  return Call(operation, comm);
}

Code ncclAllGather(const void* send, void* recv, std::size_t count, int type, Comm comm,
                   void* stream) {
  return Call(Operation("ncclAllGather", send, recv, count, type, stream), comm);
}

Code ncclReduceScatter(const void* send, void* recv, std::size_t count, int type, int reduction,
                       Comm comm, void* stream) {
  FakeOperation operation = Operation("ncclReduceScatter", send, recv, count, type, stream);
  operation.reduction = reduction;
  return Call(operation, comm);
}

Code ncclSend(const void* send, std::size_t count, int type, int peer, Comm comm, void* stream) {
  FakeOperation operation = Operation("ncclSend", send, nullptr, count, type, stream);
  operation.root = peer;
  return Call(operation, comm);
}

Code ncclRecv(void* recv, std::size_t count, int type, int peer, Comm comm, void* stream) {
  FakeOperation operation = Operation("ncclRecv", nullptr, recv, count, type, stream);
  operation.root = peer;
  return Call(operation, comm);
}

Code ncclGroupStart() { return ++group_depth, codes::kSuccess; }

Code ncclGroupEnd() {
  if (group_depth == 0) return codes::kInvalidUsage;
  if (--group_depth > 0) return codes::kSuccess;
  for (const auto& send : std::exchange(group_sends, {})) send();
  for (const auto& work : std::exchange(group_work, {})) work();
  return codes::kSuccess;
}

#if LOCKSTEP_FAKE_VERSION >= 21801 && !defined(LOCKSTEP_FAKE_WITHOUT_SPLIT)
Code ncclCommSplit(Comm comm, int color, int key, Comm* child, Config* config) {
  const FakeComm::Effect effect = Fake(comm).OnCall("ncclCommSplit");
  if (effect.code != codes::kSuccess) return effect.code;
  if (!Understands(config)) return codes::kInvalidUsage;
  const Vote vote{color, key, color >= 0 ? FakeWorld::Create() : WorldAddress{}};
  Fake(comm).Begin([comm, vote, child] { MakeChild(Fake(comm), vote, child); });
  return codes::kInProgress;
}
#endif

#if LOCKSTEP_FAKE_VERSION >= 21901
Code ncclCommRegister(Comm comm, void*, std::size_t, void** handle) {
  *handle = comm;
  return Fake(comm).OnCall("ncclCommRegister").code;
}

Code ncclCommDeregister(Comm, void*) { return codes::kSuccess; }
#endif

#if LOCKSTEP_FAKE_VERSION >= 22703
// The ranks that remain agree over the memory of all, on threads of their own: what is in flight
// may hold the parent's for ever.
Code ncclCommShrink(Comm comm, int* excluded, int excluded_count, Comm* child, Config* config,
                    int flags) {
  FakeComm& parent = Fake(comm);
  const FakeComm::Effect effect = parent.OnCall("ncclCommShrink");
  if (effect.code != codes::kSuccess) return effect.code;
  if (!Understands(config)) return codes::kInvalidUsage;
  if (flags == codes::kShrinkAbort) parent.Stop();
  int rank = parent.rank();
  for (int i = 0; i < excluded_count; ++i) rank -= excluded[i] < parent.rank() ? 1 : 0;
  const int size = parent.size() - excluded_count;
  std::thread([&successor = parent.world().successor(), rank, size, child] {
    if (rank == 0) {
      const WorldAddress made = FakeWorld::Create();
      successor.store(static_cast<std::uint64_t>(made.pid) << 32 | static_cast<unsigned>(made.fd));
    }
    while (successor.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::uint64_t address = successor.load();
    std::atomic_ref<Comm>(*child).store(FakeComm::Make(
        {static_cast<int>(address >> 32), static_cast<int>(address & 0xffffffffu)}, rank, size));
  }).detach();
  return flags == codes::kShrinkAbort ? codes::kInProgress : AwaitChild(child);
}
#endif

#if LOCKSTEP_FAKE_VERSION >= 22807
Code ncclCommRevoke(Comm comm, int) {
  const FakeComm::Effect effect = Fake(comm).OnCall("ncclCommRevoke");
  if (effect.code == codes::kSuccess) Fake(comm).Stop();
  return effect.code;
}
#endif

}  // extern "C"
