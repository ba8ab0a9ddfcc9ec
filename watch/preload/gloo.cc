// The collectives and messages of gloo, under the names that PyTorch calls. Worker threads make the
// collectives, in any order; the tag that all ranks give one says its place. Messages are calls of
// a buffer, found by its table of virtual functions, whose entries the linker looks up by name.
// Their tag is gloo's slot. Watching begins when a
// context of all ranks is connected. PyTorch makes a store with the name of a group, then connects
// the group on the same thread: so its members know it by that name. Without one, groups of all
// ranks are numbered, and smaller ones are not compared. Python loads PyTorch in a scope of its
// own: the real function is looked for from the caller's library.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "watch/events/event.h"
#include "watch/preload/forward.h"
#include "watch/preload/gloo_layout.h"
#include "watch/preload/handles.h"
#include "watch/preload/real.h"
#include "watch/preload/recorder.h"
#include "watch/preload/world.h"

namespace lockstep::watch::preload {
namespace {

using events::Call;
using events::Event;
using events::Phase;

HandleTable<2048> groups;  // by the addresses of their context, and of its transport's
HandleTable<1024> stores;  // PyTorch's: what they put before each key, by their address
HandleTable<1024> names;   // of groups, with how many contexts have had them
int world_size = 0;
std::uint64_t world_groups = 0;
std::atomic<std::int32_t> calls_of[static_cast<std::size_t>(Call::kCount)];

// The last collective of this thread: several calls may make one.
struct Last {
  std::uint64_t context = 0;
  std::uint32_t tag = 0;
  std::uint8_t part = 0;
};
constinit thread_local Last last __attribute__((tls_model("initial-exec")));

// The store that this thread made last: the next group's.
constinit thread_local std::uint64_t store_name __attribute__((tls_model("initial-exec"))) = 0;

template <typename Value>
Value Read(const void* object, int place) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(object) + place, sizeof value);
  return value;
}

LockstepFunction FindBehind(const char* symbol, void* caller) {
  void* found = dlsym(RTLD_NEXT, symbol);
  Dl_info facts;
  if (!found && dladdr(caller, &facts) != 0) {
    void* const library = dlopen(facts.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library) found = dlsym(library, symbol);
  }
  if (found) return reinterpret_cast<LockstepFunction>(found);
  Say("its gloo is not found, so the call can't be made");
  std::abort();
}

Event Leaving(Call call, int threw) {
  Event event;
  event.phase = Phase::kLeave;
  event.call = call;
  event.peer = threw;
  return event;
}

void LeftCollective(void* about, int threw) {
  Write(Leaving(*static_cast<const Call*>(about), threw));
  --internal::depth;
}

Event Entering(Call call, const OptionsLayout& layout, const void* options) {
  Event event;
  event.phase = Phase::kEnter;
  event.call = call;
  const auto context = Read<std::uint64_t>(options, 0);
  Known group;
  const bool known = groups.Find(context, &group) || groups.Find(context - kContextBase, &group);
  event.comm = known ? group.value : events::kUnknownComm;
  event.peer = layout.root == kNowhere ? events::kNoRoot : Read<std::int32_t>(options, layout.root);
  event.tag = events::kNoOp;
  if (layout.elements != kNowhere) {
    constexpr std::uint32_t kOfAnyClass = 7 << 8;
    event.count = Read<std::int64_t>(options, layout.elements);
    event.type = kOfAnyClass | Read<std::uint8_t>(options, layout.element_size);
  }
  const auto tag = Read<std::uint32_t>(options, layout.tag);
  const bool same = last.context == context && last.tag == tag;
  last = {context, tag, static_cast<std::uint8_t>(same ? last.part + 1 : 0)};
  event.request = tag + 1;
  event.part = last.part;
  event.count2 = ++calls_of[static_cast<std::size_t>(call)];
  return event;
}

void Collective(LockstepFunction real, Call call, const OptionsLayout& layout, void* options) {
  void* const arguments[5] = {options};
  if (!Watching()) return (void)real(options, nullptr, nullptr, nullptr, nullptr);
  Write(Entering(call, layout, options));
  ++internal::depth;
  LockstepForward(real, arguments, LeftCollective, &call);
}

// A buffer has one message a direction, so its address names the request. Others are too far away.
std::uint32_t RequestOf(const void* buffer, bool receives) {
  constexpr int kApart = 4;  // addresses of buffers differ by 32 or more
  const auto number = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(buffer) >> kApart);
  return (number & ~1U) | (receives ? 1 : 0) | 1U << 31;
}

Event Posting(Call call, void* const arguments[5], int peer) {
  const bool receives = call == Call::kGroupRecv;
  Event event;
  event.phase = Phase::kEnter;
  event.call = call;
  event.flags = receives ? events::kReceiving : events::kSynchronous;  // gloo buffers nothing
  Known group;
  const bool known = groups.Find(Read<std::uint64_t>(arguments[0], kBufferTransport), &group);
  event.comm = known ? group.value : events::kUnknownComm;
  event.peer = peer;
  event.tag = static_cast<std::int32_t>(reinterpret_cast<std::uint64_t>(arguments[2]));
  constexpr std::uint32_t kBytes = 7 << 8 | 1;
  event.type = kBytes;
  const auto bytes = reinterpret_cast<std::uint64_t>(arguments[4]);
  const auto offset = reinterpret_cast<std::uint64_t>(arguments[3]);
  const bool all = bytes == ~std::uint64_t{0};
  event.count = static_cast<std::int64_t>(
      all ? Read<std::uint64_t>(arguments[0], kBufferBytes) - offset : bytes);
  event.request = RequestOf(arguments[0], receives);
  event.count2 = ++calls_of[static_cast<std::size_t>(call)];
  return event;
}

// arguments: buffer, peer or peers, slot, offset, bytes
void Post(LockstepFunction real, Call call, void* const arguments[5], int peer) {
  const bool of_users = reinterpret_cast<std::uint64_t>(arguments[2]) <= INT32_MAX;
  if (!Watching() || !of_users) {
    return (void)real(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
  }
  Write(Posting(call, arguments, peer));
  ++internal::depth;
  LockstepForward(real, arguments, LeftCollective, &call);
}

void LeftWait(void*, int threw) {
  if (threw) Write(Leaving(Call::kGroupWait, threw));
  --internal::depth;
}

bool WaitFor(LockstepFunction real, void* buffer, bool receives, std::int32_t* peer,
             void* timeout) {
  std::int32_t own = events::kUnknown;
  std::int32_t* const place = peer ? peer : &own;
  void* const arguments[5] = {buffer, place, timeout};
  if (!Watching()) return (real(buffer, place, timeout, nullptr, nullptr) & 0xff) != 0;
  Event event;
  event.phase = Phase::kPart;
  event.call = Call::kGroupWait;
  event.request = RequestOf(buffer, receives);
  Write(event);
  event.phase = Phase::kEnter;
  event.request = 0;
  event.count = getpid() == syscall(SYS_gettid) ? events::kMainThread : 0;
  Write(event);
  ++internal::depth;
  const bool over = (LockstepForward(real, arguments, LeftWait, nullptr) & 0xff) != 0;
  Event done = event;
  done.phase = Phase::kDone;
  done.request = RequestOf(buffer, receives);
  done.peer = *place;
  done.flags = over ? 0 : events::kCancelled;
  Write(done);
  Write(Leaving(Call::kGroupWait, 0));
  return over;
}

struct NewStore {
  std::uint64_t key;
  std::uint64_t name;
};

void MadeStore(void* about, int threw) {
  const NewStore& made = *static_cast<const NewStore*>(about);
  Known known;
  stores.Remove(made.key, &known);  // of a store that is gone
  if (threw) return;
  if (!stores.Insert({made.key, made.name, 0, 0})) Stop(events::Stopped::kTooManyHandles);
  store_name = made.name;
}

// A group may have several contexts, and a later group the same name.
std::uint64_t NameOfGroup() {
  Known used = {store_name, 0, 0, 0};
  if (!names.Find(store_name, &used) && !names.Insert(used)) {
    Stop(events::Stopped::kTooManyHandles);
  }
  ++used.number;
  names.Update(used);
  return HashBytes(store_name, &used.number, sizeof used.number) | 1ULL << 62;
}

// `prefix` is a std::string, and `inner` holds a pointer to a store. All ranks give a group's store
// the same prefixes.
void MakeStore(const char* symbol, void* caller, void* store, void* prefix, void* inner) {
  const LockstepFunction real = FindBehind(symbol, caller);
  const void* const text = Read<const void*>(prefix, 0);
  const auto length = Read<std::uint64_t>(prefix, sizeof text);
  Known outer;
  const bool nested = stores.Find(Read<std::uint64_t>(inner, 0), &outer);
  constexpr std::uint64_t kBasis = 0xcbf29ce484222325ULL;
  NewStore made = {reinterpret_cast<std::uint64_t>(store),
                   HashBytes(nested ? outer.value : kBasis, text, length)};
  void* const arguments[5] = {store, prefix, inner};
  LockstepForward(real, arguments, MadeStore, &made);
}

bool Begin(int rank, int size) {
  if (internal::header) return world_size == 0 ? internal::header->size.load() == size : true;
  const char* const world = std::getenv("WORLD_SIZE");
  if (world && std::atoi(world) != size) {
    Say("its first group over gloo is not of all ranks");
    return false;
  }
  return BeginWatching(rank, size, ":");
}

void Connected(void* context, int threw) {
  --internal::depth;
  const int rank = Read<std::int32_t>(context, kContextRank);
  const int size = Read<std::int32_t>(context, kContextSize);
  const auto key = reinterpret_cast<std::uint64_t>(context);
  Known known;
  groups.Remove(key, &known);  // of a context that is gone
  if (threw || !Begin(rank, size)) return;
  if (world_size == 0) world_size = size;
  if (store_name == 0 && size != world_size) return;
  known = {key, store_name != 0 ? NameOfGroup() : events::kWorldGroups + world_groups++, 0, 0};
  const auto transport = Read<std::uint64_t>(context, kContextTransport);
  Known gone;
  groups.Remove(transport, &gone);
  if (!groups.Insert(known) || !groups.Insert({transport, known.value, 0, 0})) {
    return Stop(events::Stopped::kTooManyHandles);
  }
  Event event;
  event.phase = Phase::kMade;
  event.call = Call::kGroupInit;
  event.comm = known.value;
  event.peer = rank;
  event.count = size;
  Write(event);
}

void Connect(const char* symbol, void* caller, void* context, void* store, void* device) {
  const LockstepFunction real = FindBehind(symbol, caller);
  ++internal::depth;
  void* const arguments[5] = {context, store, device};
  LockstepForward(real, arguments, Connected, context);
}

}  // namespace
}  // namespace lockstep::watch::preload

#define LOCKSTEP_GLOO_VISIBLE extern "C" __attribute__((visibility("default")))

#define LOCKSTEP_GLOO_COLLECTIVE(NAME, OPTIONS, SYMBOL, CALL, ...)                        \
  LOCKSTEP_GLOO_VISIBLE void LockstepGloo_##NAME(void* options) __asm__(SYMBOL);          \
  LOCKSTEP_GLOO_VISIBLE void LockstepGloo_##NAME(void* options) {                         \
    using namespace lockstep::watch; /* NOLINT */                                         \
    void* const caller = __builtin_return_address(0);                                     \
    const LockstepFunction real =                                                         \
        preload::FoundOnce([&] { return preload::FindBehind(SYMBOL, caller); });          \
    preload::Collective(real, events::Call::k##CALL, preload::OptionsLayout{__VA_ARGS__}, \
                        options);                                                         \
  }
namespace lockstep::watch::preload {
LOCKSTEP_GLOO_COLLECTIVES(LOCKSTEP_GLOO_COLLECTIVE)
}  // namespace lockstep::watch::preload

#define LOCKSTEP_GLOO_POST(NAME, SYMBOL, CALL, PEER, PEER_OF)                                   \
  LOCKSTEP_GLOO_VISIBLE void NAME(void* buffer, PEER peer, void* slot, void* offset,            \
                                  void* bytes) __asm__(SYMBOL);                                 \
  LOCKSTEP_GLOO_VISIBLE void NAME(void* buffer, PEER peer, void* slot, void* offset,            \
                                  void* bytes) {                                                \
    using namespace lockstep::watch; /* NOLINT */                                               \
    void* const caller = __builtin_return_address(0);                                           \
    const LockstepFunction real =                                                               \
        preload::FoundOnce([&] { return preload::FindBehind(SYMBOL, caller); });                \
    void* const arguments[5] = {buffer, (void*)(std::uintptr_t)peer, slot, offset, /* NOLINT */ \
                                bytes};                                                         \
    preload::Post(real, events::Call::CALL, arguments, PEER_OF);                                \
  }
LOCKSTEP_GLOO_POST(LockstepGlooSend, "_ZN4gloo9transport3tcp13UnboundBuffer4sendEimmm", kGroupSend,
                   int, peer)
LOCKSTEP_GLOO_POST(LockstepGlooRecv, "_ZN4gloo9transport3tcp13UnboundBuffer4recvEimmm", kGroupRecv,
                   int, peer)
// Of several peers: a std::vector, by its address. PyTorch gives all.
LOCKSTEP_GLOO_POST(LockstepGlooRecvAny,
                   "_ZN4gloo9transport3tcp13UnboundBuffer4recvESt6vectorIiSaIiEEmmm", kGroupRecv,
                   void*, events::kAnySource)

#define LOCKSTEP_GLOO_WAIT(NAME, SYMBOL, RECEIVES)                                         \
  LOCKSTEP_GLOO_VISIBLE bool NAME(void* buffer, int* peer, void* timeout) __asm__(SYMBOL); \
  LOCKSTEP_GLOO_VISIBLE bool NAME(void* buffer, int* peer, void* timeout) {                \
    using namespace lockstep::watch; /* NOLINT */                                          \
    void* const caller = __builtin_return_address(0);                                      \
    const LockstepFunction real =                                                          \
        preload::FoundOnce([&] { return preload::FindBehind(SYMBOL, caller); });           \
    return lockstep::watch::preload::WaitFor(real, buffer, RECEIVES, peer, timeout);       \
  }
LOCKSTEP_GLOO_WAIT(LockstepGlooWaitSend,
                   "_ZN4gloo9transport3tcp13UnboundBuffer8waitSendEPiNSt6chrono8durationIlSt5"
                   "ratioILl1ELl1000EEEE",
                   false)
LOCKSTEP_GLOO_WAIT(LockstepGlooWaitRecv,
                   "_ZN4gloo9transport3tcp13UnboundBuffer8waitRecvEPiNSt6chrono8durationIlSt5"
                   "ratioILl1ELl1000EEEE",
                   true)

// Newer ones take the store by shared_ptr: a pointer to it is what is passed, too.
#define LOCKSTEP_GLOO_CONNECT(NAME, SYMBOL)                                                  \
  LOCKSTEP_GLOO_VISIBLE void NAME(void* context, void* store, void* device) __asm__(SYMBOL); \
  LOCKSTEP_GLOO_VISIBLE void NAME(void* context, void* store, void* device) {                \
    lockstep::watch::preload::Connect(SYMBOL, __builtin_return_address(0), context, store,   \
                                      device);                                               \
  }
LOCKSTEP_GLOO_CONNECT(LockstepGlooConnect,
                      "_ZN4gloo10rendezvous7Context15connectFullMeshERNS0_5StoreERSt10shared_ptr"
                      "INS_9transport6DeviceEE")
LOCKSTEP_GLOO_CONNECT(LockstepGlooConnectShared,
                      "_ZN4gloo10rendezvous7Context15connectFullMeshESt10shared_ptrINS0_5StoreEE"
                      "RS2_INS_9transport6DeviceEE")

// c10d::PrefixStore's constructor; newer ones take the prefix by value: a pointer to it, too.
#define LOCKSTEP_TORCH_STORE(NAME, SYMBOL)                                                  \
  LOCKSTEP_GLOO_VISIBLE void NAME(void* store, void* prefix, void* inner) __asm__(SYMBOL);  \
  LOCKSTEP_GLOO_VISIBLE void NAME(void* store, void* prefix, void* inner) {                 \
    lockstep::watch::preload::MakeStore(SYMBOL, __builtin_return_address(0), store, prefix, \
                                        inner);                                             \
  }
LOCKSTEP_TORCH_STORE(LockstepTorchStore,
                     "_ZN4c10d11PrefixStoreC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcE"
                     "SaIcEEEN3c1013intrusive_ptrINS_5StoreENS9_6detail34intrusive_target_"
                     "default_null_typeISB_EEEE")
LOCKSTEP_TORCH_STORE(LockstepTorchStoreByValue,
                     "_ZN4c10d11PrefixStoreC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcE"
                     "SaIcEEEN3c1013intrusive_ptrINS_5StoreENS7_6detail34intrusive_target_"
                     "default_null_typeIS9_EEEE")
