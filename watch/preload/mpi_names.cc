// What handles stand for. Types are taken for equal when class and size of their elements are,
// because programs that mix MPI_INT and MPI_INT32_T are right here. Communicators get the same
// number in all members: parent, how many were made on it before, and the member of rank 0. Where
// only the new members call, it is the parent, all of them, and how many they made before.
#include "watch/preload/mpi_names.h"

#include <algorithm>
#include <atomic>
#include <climits>

#include "watch/preload/members.h"
#include "watch/preload/real.h"
#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {
namespace {

using events::Event;
using events::Object;
using events::Phase;

HandleTable<4096> communicators;
HandleTable<1024> windows;
HandleTable<1024> files;
HandleTable<8192> types;
HandleTable<1024> operators;
HandleTable<4096> mpi_groups;
HandleTable<4096> ordinals;
// A communicator was made by a call that is not followed: a handle that was freed may be its own.
std::atomic<bool> unfollowed_made{false};
constexpr std::uint64_t kWindowSalt = 77;
constexpr std::uint64_t kFileSalt = 99;
std::atomic<std::uint32_t> last_object{0};

// `value` of a type: its elements; `number`: how many of them an item has.
// `code`: what is known of its life.
enum TypeLife : std::uint32_t { kPredefined, kFresh, kCommitted, kGone };

constinit LastGone gone_types(types);
constinit LastGone gone_communicators(communicators);

template <typename Table>
void Remember(Table& table, const Known& known) {
  if (!table.Insert(known)) Stop(events::Stopped::kTooManyHandles);
}

void NoteMade(Object object, std::uint32_t number, events::Call call, std::uint64_t site) {
  Event event;
  event.phase = Phase::kMade;
  event.object = object;
  event.request = number;
  event.call = call;
  event.site = site;
  Write(event);
}

void NoteFreed(Object object, std::uint32_t number, std::uint64_t site) {
  Event event;
  event.phase = Phase::kFreed;
  event.object = object;
  event.request = number;
  event.site = site;
  Write(event);
}

// How many there were of this before.
std::uint64_t Ordinal(std::uint64_t base) {
  Known known;
  if (ordinals.Find(base, &known)) {
    ++known.value;
    ordinals.Update(known);
    return known.value;
  }
  Remember(ordinals, {base, 0, 0, 0});
  return 0;
}

std::uint32_t ElementsOfItem(std::uint32_t element, int size) {
  const std::uint32_t width = element < 256 ? 1 : element & 255;
  return width == 0 || size < 0 ? 0 : static_cast<std::uint32_t>(size) / width;
}

void LearnType(Handle type, std::uint32_t type_class) {
  if (type.word == 0 || type == abi.datatype_null) return;
  int size = 0;
  Real<int(Handle, int*)>("PMPI_Type_size")(type, &size);
  auto element =
      type_class == kBytes ? events::kByteType : type_class << 8 | static_cast<std::uint32_t>(size);
  // MPI defines it as two of these in a row.
  if (type_class == kTwoInts) element = kSigned << 8 | static_cast<std::uint32_t>(size / 2);
  types.Insert({type.Bits(), element, ElementsOfItem(element, size), kPredefined});
}

void LearnTypes() {
#define LOCKSTEP_LEARN(type_class, name, open_mpi, mpich) \
  LearnType(NamedHandle(#open_mpi, mpich), type_class);
  LOCKSTEP_MPI_TYPES(LOCKSTEP_LEARN)
#undef LOCKSTEP_LEARN
}

int RankIn(Handle comm) {
  int rank = 0;
  Real<int(Handle, int*)>("PMPI_Comm_rank")(comm, &rank);
  return rank;
}

int SizeOf(Handle comm) {
  int size = 0;
  Real<int(Handle, int*)>("PMPI_Comm_size")(comm, &size);
  return size;
}

// Where its members stand in the world, the first `most` of them. A library looks each one up.
// 0: one of them is in another world, as the processes are that MPI_Comm_spawn starts.
std::uint64_t MembersOf(Handle comm, int most) {
  Handle mine;
  Handle world;
  Real<int(Handle, Handle*)>("PMPI_Comm_group")(comm, &mine);
  Real<int(Handle, Handle*)>("PMPI_Comm_group")(abi.comm_world, &world);
  int size = 0;
  Real<int(Handle, int*)>("PMPI_Group_size")(mine, &size);
  const auto translate =
      Real<int(Handle, int, const int*, Handle, int*)>("PMPI_Group_translate_ranks");
  bool here_only = true;
  const std::uint64_t members =
      HashMembers(size, most, [&](const int* here, int count, int* there) {
        translate(mine, count, here, world, there);
        here_only = here_only && std::count(there, there + count, kMpiUndefined) == 0;
      });
  const auto free_group = Real<int(Handle*)>("PMPI_Group_free");
  free_group(&mine);
  free_group(&world);
  return here_only ? members : 0;
}

// Members, the own rank and the size, which judges put together.
void NoteMembers(std::uint64_t comm, int rank, int size, bool inter, Object object,
                 std::uint32_t number, events::Call call, std::uint64_t site) {
  Event event;
  event.phase = Phase::kMade;
  event.object = object;
  event.flags = inter ? events::kIntercomm : 0;
  event.comm = comm;
  event.peer = rank;
  event.count = size;
  event.request = number;
  event.call = call;
  event.site = site;
  Write(event);
}

template <typename Table>
std::uint64_t NumberOf(Table& table, std::uint64_t key) {
  Known known;
  if (!table.Find(key, &known)) return events::kUnknownComm;
  if (known.code != kGone) return known.value;
  return unfollowed_made.load(std::memory_order_relaxed) ? events::kUnknownComm
                                                         : events::kFreedComm;
}

// What had the handle before is gone: its thread is about to say so.
template <typename Table>
void Replace(Table& table, const Known& known) {
  Known old;
  table.Remove(known.key, &old);
  Remember(table, known);
}

}  // namespace

bool IsInter(Handle comm) {
  const auto is_inter = FoundOnce([] { return Real<int(Handle, int*)>("PMPI_Comm_test_inter"); });
  int inter = 0;
  return is_inter(comm, &inter) == kMpiSuccess && inter != 0;
}

void LearnPredefined() {
  LearnTypes();
  std::uint32_t number = 0;
#define LOCKSTEP_LEARN(name, open_mpi, mpich) \
  operators.Insert({NamedHandle(#open_mpi, mpich).Bits(), number++, 0, 0});
  LOCKSTEP_MPI_OPERATORS(LOCKSTEP_LEARN)
#undef LOCKSTEP_LEARN
  const int rank = RankIn(abi.comm_world);
  const int size = SizeOf(abi.comm_world);
  communicators.Insert({abi.comm_world.Bits(), events::kWorldComm, 0, 0});
  const std::uint64_t self = Mix(events::kWorldComm, static_cast<std::uint64_t>(rank) + 1);
  communicators.Insert({abi.comm_self.Bits(), self, 0, 0});
  NoteMembers(events::kWorldComm, rank, size, false, Object::kCommunicator, 0, events::Call::kInit,
              0);
  NoteMembers(self, 0, 1, false, Object::kCommunicator, 0, events::Call::kInit, 0);
}

std::uint64_t CommOf(Handle comm) {
  return comm == abi.comm_null ? events::kNullComm : NumberOf(communicators, comm.Bits());
}
std::uint64_t WindowOf(Handle window) {
  return window == abi.win_null ? events::kNullComm : NumberOf(windows, window.Bits());
}
std::uint64_t FileOf(FileHandle file) {
  return file == abi.file_null.word ? events::kNullComm : NumberOf(files, file);
}

Elements ElementsOf(Handle type, std::int64_t count) {
  if (type == abi.datatype_null) return {events::kNullType, count};
  Known known;
  if (!types.Find(type.Bits(), &known)) {
    return {events::kMixedType, events::kUnknownCount};
  }
  if (known.code == kGone) return {events::kFreedType, count};
  if (known.code == kFresh) return {events::kUncommittedType, count};
  return {static_cast<std::uint32_t>(known.value), count * known.number};
}

std::uint32_t ElementTypeOf(Handle type) {
  Known known;
  return types.Find(type.Bits(), &known) ? static_cast<std::uint32_t>(known.value)
                                         : events::kMixedType;
}

std::uint32_t ElementTypeOf(Handles parts, int size) {
  if (size <= 0) return events::kMixedType;
  const std::uint32_t element = ElementTypeOf(*parts);
  for (int part = 1; part < size; ++part) {
    if (ElementTypeOf(parts[part]) != element) return events::kMixedType;
  }
  return element;
}

std::int32_t OperatorOf(Handle op) {
  if (op == abi.op_null) return events::kNullOp;
  Known known;
  if (!operators.Find(op.Bits(), &known)) return events::kUserOp;
  return known.number != 0 ? events::kUserOp : static_cast<std::int32_t>(known.value);
}

std::int32_t SourceOf(int source) {
  if (source == abi.any_source) return events::kAnySource;
  return source == abi.proc_null ? events::kProcNull : source;
}

std::int32_t TagOf(int tag) { return tag == kMpiAnyTag ? events::kAnyTag : tag; }

void MadeComm(Handle parent, Handle comm, std::uint64_t salt, events::Call call,
              std::uint64_t site) {
  // Without `salt` all members of the parent make it together, also those that get none.
  const bool together = salt == 0;
  const std::uint64_t before = together ? Ordinal(CommOf(parent)) : 0;
  if (comm == abi.comm_null) return;
  Known old;
  communicators.Remove(comm.Bits(), &old);
  const std::uint64_t members = MembersOf(comm, together ? 1 : INT_MAX);
  if (CommOf(parent) == events::kUnknownComm || members == 0) return;
  const std::uint64_t base = Mix(Mix(CommOf(parent), salt), members);
  const std::uint64_t name = Mix(base, together ? before : Ordinal(base));
  const std::uint32_t number = ++last_object;
  Remember(communicators, {comm.Bits(), name, number, 0});
  NoteMembers(name, RankIn(comm), SizeOf(comm), IsInter(comm), Object::kCommunicator, number, call,
              site);
}

void MadeUnfollowedComm() { unfollowed_made = true; }

void MadeWindow(Handle parent, Handle window, events::Call call, std::uint64_t site) {
  if (window == abi.win_null || CommOf(parent) == events::kUnknownComm) return;
  const std::uint64_t base = Mix(CommOf(parent), kWindowSalt);
  const std::uint64_t name = Mix(base, Ordinal(base));
  const std::uint32_t number = ++last_object;
  Replace(windows, {window.Bits(), name, number, 0});
  NoteMembers(name, RankIn(parent), SizeOf(parent), false, Object::kWindow, number, call, site);
}

void MadeFile(Handle parent, FileHandle file, events::Call call, std::uint64_t site) {
  if (file == abi.file_null.word || CommOf(parent) == events::kUnknownComm) return;
  const std::uint64_t base = Mix(CommOf(parent), kFileSalt);
  const std::uint64_t name = Mix(base, Ordinal(base));
  const std::uint32_t number = ++last_object;
  Replace(files, {file, name, number, 0});
  NoteMembers(name, RankIn(parent), SizeOf(parent), false, Object::kFile, number, call, site);
}

void MadeType(Handle type, std::uint32_t element, events::Call call, std::uint64_t site) {
  if (type == abi.datatype_null) return;
  int size = 0;
  Real<int(Handle, int*)>("PMPI_Type_size")(type, &size);
  Known old;
  types.Remove(type.Bits(), &old);
  if (size < 0) element = 0;  // MPI_UNDEFINED: too large to be told. Then nothing is compared.
  const std::uint32_t number = ++last_object;
  // The object's number travels in the upper half of the value.
  Remember(types, {type.Bits(), std::uint64_t{number} << 32 | element,
                   ElementsOfItem(element, size), kFresh});
  NoteMade(Object::kDatatype, number, call, site);
}

void GotType(Handle type) {
  Known known;
  if (types.Find(type.Bits(), &known) && known.code == kGone) types.Remove(type.Bits(), &known);
}

void GotPart(Handle type, std::uint64_t site) {
  Known known;
  if (!types.Find(type.Bits(), &known) || known.code == kPredefined) return;
  types.RemoveSame(known);
  NoteFreed(Object::kDatatype, static_cast<std::uint32_t>(known.value >> 32), site);
}

void CommittedType(Handle type) {
  GotType(type);  // what was freed can't be committed: a call that is not followed made another one
  Known known;
  if (!types.Find(type.Bits(), &known) || known.code != kFresh) return;
  known.code = kCommitted;
  types.Update(known);
}

void MadeOp(Handle op, events::Call call, std::uint64_t site) {
  const std::uint32_t number = ++last_object;
  Replace(operators, {op.Bits(), 0, number, 0});
  NoteMade(Object::kOperator, number, call, site);
}

void MadeGroup(Handle group, events::Call call, std::uint64_t site) {
  if (group == abi.group_null || group == abi.group_empty) return;
  const std::uint32_t number = ++last_object;
  Remember(mpi_groups, {group.Bits(), 0, number, 0});
  NoteMade(Object::kGroup, number, call, site);
}

namespace {

// Calls `use` with the table in which such objects are.
template <typename Use>
void WithTable(Object object, Use use) {
  switch (object) {
    case Object::kCommunicator:
      return use(communicators);
    case Object::kDatatype:
      return use(types);
    case Object::kOperator:
      return use(operators);
    case Object::kGroup:
      return use(mpi_groups);
    case Object::kWindow:
      return use(windows);
    case Object::kFile:
      return use(files);
  }
}

void FreedType(const Known& held, std::uint64_t site) {
  if (held.code == kPredefined || held.code == kGone) return;
  gone_types.Mark(held, kGone);
  NoteFreed(Object::kDatatype, static_cast<std::uint32_t>(held.value >> 32), site);
}

void FreedComm(const Known& held, std::uint64_t site) {
  if (held.number == 0 || held.code == kGone) return;
  gone_communicators.Mark(held, kGone);
  Known unused;
  for (const std::uint64_t base :
       {held.value, Mix(held.value, kWindowSalt), Mix(held.value, kFileSalt)}) {
    ordinals.Remove(base, &unused);
  }
  NoteFreed(Object::kCommunicator, held.number, site);
}

}  // namespace

Known Held(Object object, std::uint64_t handle) {
  Known known;
  WithTable(object, [&](auto& table) { table.Find(handle, &known); });
  return known;
}

void Freed(Object object, const Known& held, std::uint64_t site) {
  if (held.key == 0) return;
  if (object == Object::kCommunicator) return FreedComm(held, site);
  if (object == Object::kDatatype) return FreedType(held, site);
  Known removed = held;
  if (object == Object::kGroup) {  // Open MPI gives its handle several times: any of them goes
    mpi_groups.RemoveOne(held.key, held.number, &removed);
  } else {
    WithTable(object, [&](auto& table) { table.RemoveSame(held); });
  }
  NoteFreed(object, removed.number, site);
}

}  // namespace lockstep::watch::preload
