// A communicator has the same name in all members: its unique id, or its parent's name with what
// all members of the child know. A child's handle may be written long after the call that makes it.
#include "watch/preload/nccl_comms.h"

#include <dlfcn.h>

#include <atomic>

#include "watch/preload/handles.h"
#include "watch/preload/nccl_calls.h"
#include "watch/preload/real.h"
#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {
namespace {

using events::Call;
using events::Event;
using events::Phase;

constexpr std::uint8_t kOfSplits = 1;  // splits have an order of their own

// By handle; the name, then how many collectives and how many splits were called on it.
HandleTable<1024> nccl_communicators;

// What a call will have made once its library says so.
struct Pending {
  void** place = nullptr;  // where NCCL writes the handle; null: an empty entry
  void* parent = nullptr;  // null: made of a unique id, so rank and size are known already
  std::uint64_t name = 0;
  const void* thread = nullptr;  // whose group it is in, of what is made of a unique id
};
constexpr int kMostPending = 64;
constinit thread_local char thread_mark __attribute__((tls_model("initial-exec"))) = 0;
Pending pending[kMostPending];
std::atomic<int> pending_count{0};
std::atomic_flag pending_lock = ATOMIC_FLAG_INIT;

std::uint64_t HandleKey(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }

const void* ThreadOf(void* parent) { return parent ? nullptr : &thread_mark; }

}  // namespace

// Above all names that mean something else.
std::uint64_t NcclName(std::uint64_t before, const void* data, std::size_t bytes) {
  return HashBytes(before ^ 0xcbf29ce484222325ULL, data, bytes) | 1ULL << 63;
}

// Python loads NCCL in a scope of its own, which RTLD_NEXT does not see.
void* FindNccl(const char* symbol, void* caller) {
  if (void* const found = dlsym(RTLD_NEXT, symbol)) return found;
  Dl_info facts;
  static const char* user = nullptr;  // the library that called first, and knows its NCCL
  if (!user && caller && dladdr(caller, &facts) != 0) user = facts.dli_fname;
  for (const char* file : {user, "libnccl.so.2"}) {
    void* const library = file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    if (void* const found = library ? dlsym(library, symbol) : nullptr) return found;
  }
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) Say("its NCCL is not found");
  return nullptr;
}

std::uint64_t NameOfNccl(void* comm) {
  Known known;
  return nccl_communicators.Find(HandleKey(comm), &known) ? known.value : events::kUnknownComm;
}

void NumberCall(void* comm, bool split, Event* event) {
  Known known;
  event->comm = events::kUnknownComm;
  if (!nccl_communicators.Find(HandleKey(comm), &known)) return;
  event->comm = known.value;
  event->request = split ? ++known.code : ++known.number;
  event->part = split ? kOfSplits : 0;
  nccl_communicators.Update(known);
}

void JoinedComm(std::uint64_t name, int rank, int size) {
  Event event;
  event.phase = Phase::kMade;
  event.call = Call::kNcclInit;
  event.comm = name;
  event.peer = rank;
  event.count = size;
  Write(event);
}

void RememberComm(void* comm, std::uint64_t name) {
  ForgetComm(comm);  // of a communicator that is gone
  if (!nccl_communicators.Insert({HandleKey(comm), name, 0, 0}))
    Stop(events::Stopped::kTooManyHandles);
}

void ForgetComm(void* comm) {
  Known known;
  nccl_communicators.Remove(HandleKey(comm), &known);
  if (pending_count.load() == 0) return;
  const SpinLock lock(pending_lock);
  for (Pending& each : pending) {
    if (each.parent != comm || !each.place) continue;
    each = Pending();
    pending_count.fetch_sub(1);
  }
}

void ExpectComm(void** place, void* parent, std::uint64_t name) {
  const SpinLock lock(pending_lock);
  for (Pending& each : pending) {
    if (each.place) continue;
    each = {place, parent, name, ThreadOf(parent)};
    pending_count.fetch_add(1);
    return;
  }
}

void CollectComms(void* parent) {
  if (pending_count.load() == 0) return;
  Pending made[kMostPending];
  int count = 0;
  {
    const SpinLock lock(pending_lock);
    for (Pending& each : pending) {
      if (!each.place || each.parent != parent || each.thread != ThreadOf(parent)) continue;
      made[count++] = each;
      each = Pending();
      pending_count.fetch_sub(1);
    }
  }
  const auto rank_of = FoundOnce([] { return RealNccl<int(void*, int*)>("ncclCommUserRank"); });
  const auto size_of = FoundOnce([] { return RealNccl<int(void*, int*)>("ncclCommCount"); });
  for (int each = 0; each < count; ++each) {
    void* const comm = *made[each].place;
    int rank = 0;
    int size = 0;
    if (!comm) continue;
    RememberComm(comm, made[each].name);
    if (!parent || !rank_of || !size_of) continue;
    if (rank_of(comm, &rank) == kNcclSuccess && size_of(comm, &size) == kNcclSuccess) {
      JoinedComm(made[each].name, rank, size);
    }
  }
}

void CollectAllComms() {
  CollectComms(nullptr);
  for (int each = 0; each < kMostPending; ++each) {
    if (void* const parent = pending[each].parent) CollectComms(parent);
  }
}

}  // namespace lockstep::watch::preload
