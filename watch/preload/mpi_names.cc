// What handles stand for. Types are taken for equal when class and size of their elements are,
// because programs that mix MPI_INT and MPI_INT32_T are right here. Communicators get the same
// number in all members: parent, how many were made on it before, and the member of rank 0.
#include "watch/preload/mpi_names.h"

#include <atomic>

#include "watch/preload/handles.h"
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
HandleTable<65536> requests;
HandleTable<4096> ordinals;
std::atomic<std::uint32_t> last_object{0};
std::atomic<std::uint32_t> last_request{0};

// `code` of a type: what is known of its life.
enum TypeLife : std::uint32_t { kPredefined, kFresh, kCommitted, kGone };

template <typename Handle>
std::uint64_t Key(Handle handle) {
  return (std::uint64_t)(std::uintptr_t)handle;  // NOLINT: a pointer or an int, as the vendor likes
}

template <typename Table>
void Remember(Table& table, const Known& known) {
  if (!table.Insert(known)) Stop(events::Stopped::kTooManyHandles);
}

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t mixed =
      (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdULL;
  mixed ^= mixed >> 33;
  return mixed < 1000 ? mixed + 1000 : mixed;
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

// The new communicator's number is its order among those that share parent and first member.
std::uint64_t Ordinal(std::uint64_t base) {
  Known known;
  if (ordinals.Find(base, &known)) {
    ++known.value;
    ordinals.Update(known);
    return known.value;
  }
  ordinals.Insert({base, 0, 0, 0});
  return 0;
}

void LearnType(MPI_Datatype type, std::uint32_t type_class) {
  if (type == MPI_DATATYPE_NULL) return;
  int size = 0;
  Real<int(MPI_Datatype, int*)>("PMPI_Type_size")(type, &size);
  const auto element =
      type_class == 0 ? events::kByteType : type_class << 8 | static_cast<std::uint32_t>(size);
  types.Insert({Key(type), element, static_cast<std::uint32_t>(size), kPredefined});
}

void LearnTypes() {
  enum : std::uint32_t { kBytes, kSigned, kUnsigned, kReal, kComplex, kLogical, kPairs = 16 };
  for (MPI_Datatype type : {MPI_BYTE, MPI_PACKED}) LearnType(type, kBytes);
  for (MPI_Datatype type :
       {MPI_CHAR,      MPI_SIGNED_CHAR, MPI_SHORT,    MPI_INT,      MPI_LONG,
        MPI_LONG_LONG, MPI_INT8_T,      MPI_INT16_T,  MPI_INT32_T,  MPI_INT64_T,
        MPI_INTEGER,   MPI_INTEGER1,    MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,
        MPI_AINT,      MPI_OFFSET,      MPI_COUNT,    MPI_WCHAR,    MPI_CHARACTER}) {
    LearnType(type, kSigned);
  }
  for (MPI_Datatype type :
       {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
        MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T}) {
    LearnType(type, kUnsigned);
  }
  for (MPI_Datatype type : {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_REAL4, MPI_REAL8,
                            MPI_DOUBLE_PRECISION}) {
    LearnType(type, kReal);
  }
  for (MPI_Datatype type : {MPI_C_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX,
                            MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16}) {
    LearnType(type, kComplex);
  }
  for (MPI_Datatype type : {MPI_C_BOOL, MPI_LOGICAL}) LearnType(type, kLogical);
  std::uint32_t pair = kPairs;
  for (MPI_Datatype type : {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
                            MPI_LONG_DOUBLE_INT}) {
    LearnType(type, pair++);
  }
}

int RankIn(MPI_Comm comm) {
  int rank = 0;
  Real<int(MPI_Comm, int*)>("PMPI_Comm_rank")(comm, &rank);
  return rank;
}

int SizeOf(MPI_Comm comm) {
  int size = 0;
  Real<int(MPI_Comm, int*)>("PMPI_Comm_size")(comm, &size);
  return size;
}

// Where the member of rank 0 stands in the world.
int FirstMember(MPI_Comm comm) {
  MPI_Group mine;
  MPI_Group world;
  Real<int(MPI_Comm, MPI_Group*)>("PMPI_Comm_group")(comm, &mine);
  Real<int(MPI_Comm, MPI_Group*)>("PMPI_Comm_group")(MPI_COMM_WORLD, &world);
  const int zero = 0;
  int first = 0;
  Real<int(MPI_Group, int, const int*, MPI_Group, int*)>("PMPI_Group_translate_ranks")(
      mine, 1, &zero, world, &first);
  const auto free_group = Real<int(MPI_Group*)>("PMPI_Group_free");
  free_group(&mine);
  free_group(&world);
  return first;
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

bool IsInter(MPI_Comm comm) {
  int inter = 0;
  Real<int(MPI_Comm, int*)>("PMPI_Comm_test_inter")(comm, &inter);
  return inter != 0;
}

template <typename Table>
std::uint64_t NumberOf(Table& table, std::uint64_t key) {
  Known known;
  if (!table.Find(key, &known)) return events::kUnknownComm;
  return known.code == kGone ? events::kFreedComm : known.value;
}

template <typename Table>
void Freed(Table& table, std::uint64_t key, Object object, std::uint64_t site) {
  Known known;
  if (table.Remove(key, &known)) NoteFreed(object, known.number, site);
}

}  // namespace

void LearnPredefined() {
  LearnTypes();
  std::uint32_t number = 0;
  for (MPI_Op op : {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR,
                    MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP}) {
    operators.Insert({Key(op), number++, 0, 0});
  }
  const int rank = RankIn(MPI_COMM_WORLD);
  const int size = SizeOf(MPI_COMM_WORLD);
  communicators.Insert({Key(MPI_COMM_WORLD), events::kWorldComm, 0, 0});
  const std::uint64_t self = Mix(events::kWorldComm, static_cast<std::uint64_t>(rank) + 1);
  communicators.Insert({Key(MPI_COMM_SELF), self, 0, 0});
  NoteMembers(events::kWorldComm, rank, size, false, Object::kCommunicator, 0, events::Call::kInit,
              0);
  NoteMembers(self, 0, 1, false, Object::kCommunicator, 0, events::Call::kInit, 0);
}

std::uint64_t CommOf(MPI_Comm comm) {
  return comm == MPI_COMM_NULL ? events::kNullComm : NumberOf(communicators, Key(comm));
}
std::uint64_t WindowOf(MPI_Win window) {
  return window == MPI_WIN_NULL ? events::kNullComm : NumberOf(windows, Key(window));
}
std::uint64_t FileOf(MPI_File file) {
  return file == MPI_FILE_NULL ? events::kNullComm : NumberOf(files, Key(file));
}

Elements ElementsOf(MPI_Datatype type, std::int64_t count) {
  if (type == MPI_DATATYPE_NULL) return {events::kNullType, count};
  Known known;
  if (!types.Find(Key(type), &known)) {
    return {events::kMixedType, events::kUnknownCount};
  }
  if (known.code == kGone) return {events::kFreedType, count};
  if (known.code == kFresh) return {events::kUncommittedType, count};
  const auto element = static_cast<std::uint32_t>(known.value);
  const std::uint32_t width = element < 256 ? 1 : element & 255;
  return {element, width == 0 ? 0 : count * known.number / width};
}

std::uint32_t ElementTypeOf(const MPI_Datatype* parts, int size) {
  std::uint32_t element = events::kMixedType;
  for (int part = 0; part < size; ++part) {
    Known known;
    if (!types.Find(Key(parts[part]), &known)) return events::kMixedType;
    const auto mine = static_cast<std::uint32_t>(known.value);
    if (part > 0 && mine != element) return events::kMixedType;
    element = mine;
  }
  return element;
}

std::int32_t OperatorOf(MPI_Op op) {
  if (op == MPI_OP_NULL) return events::kNullOp;
  Known known;
  if (!operators.Find(Key(op), &known)) return events::kUserOp;
  return known.number != 0 ? events::kUserOp : static_cast<std::int32_t>(known.value);
}

std::int32_t SourceOf(int source) {
  if (source == MPI_ANY_SOURCE) return events::kAnySource;
  return source == MPI_PROC_NULL ? events::kProcNull : source;
}

std::int32_t TagOf(int tag) { return tag == MPI_ANY_TAG ? events::kAnyTag : tag; }

void MadeComm(MPI_Comm parent, MPI_Comm comm, std::uint64_t salt, events::Call call,
              std::uint64_t site) {
  if (comm == MPI_COMM_NULL) return;
  const std::uint64_t base =
      Mix(Mix(CommOf(parent), salt), static_cast<std::uint64_t>(FirstMember(comm)));
  const std::uint64_t name = Mix(base, Ordinal(base));
  const std::uint32_t number = ++last_object;
  Known old;
  communicators.Remove(Key(comm), &old);
  Remember(communicators, {Key(comm), name, number, 0});
  NoteMembers(name, RankIn(comm), SizeOf(comm), IsInter(comm), Object::kCommunicator, number, call,
              site);
}

void MadeWindow(MPI_Comm parent, MPI_Win window, events::Call call, std::uint64_t site) {
  if (window == MPI_WIN_NULL) return;
  const std::uint64_t base = Mix(CommOf(parent), 77);
  const std::uint64_t name = Mix(base, Ordinal(base));
  const std::uint32_t number = ++last_object;
  Remember(windows, {Key(window), name, number, 0});
  NoteMembers(name, RankIn(parent), SizeOf(parent), false, Object::kWindow, number, call, site);
}

void MadeFile(MPI_Comm parent, MPI_File file, events::Call call, std::uint64_t site) {
  if (file == MPI_FILE_NULL) return;
  const std::uint64_t base = Mix(CommOf(parent), 99);
  const std::uint64_t name = Mix(base, Ordinal(base));
  const std::uint32_t number = ++last_object;
  Remember(files, {Key(file), name, number, 0});
  NoteMembers(name, RankIn(parent), SizeOf(parent), false, Object::kFile, number, call, site);
}

void MadeType(MPI_Datatype type, std::uint32_t element, events::Call call, std::uint64_t site) {
  if (type == MPI_DATATYPE_NULL) return;
  int size = 0;
  Real<int(MPI_Datatype, int*)>("PMPI_Type_size")(type, &size);
  Known old;
  types.Remove(Key(type), &old);
  const std::uint32_t number = ++last_object;
  // The object's number travels in the upper half of the value.
  Remember(types, {Key(type), std::uint64_t{number} << 32 | element,
                   static_cast<std::uint32_t>(size), kFresh});
  NoteMade(Object::kDatatype, number, call, site);
}

void CommittedType(MPI_Datatype type) {
  Known known;
  if (!types.Find(Key(type), &known) || known.code != kFresh) return;
  known.code = kCommitted;
  types.Update(known);
}

void FreedType(MPI_Datatype type, std::uint64_t site) {
  Known known;
  if (!types.Find(Key(type), &known) || known.code == kPredefined || known.code == kGone) return;
  known.code = kGone;
  types.Update(known);
  NoteFreed(Object::kDatatype, static_cast<std::uint32_t>(known.value >> 32), site);
}

void MadeOp(MPI_Op op, events::Call call, std::uint64_t site) {
  const std::uint32_t number = ++last_object;
  Remember(operators, {Key(op), 0, number, 0});
  NoteMade(Object::kOperator, number, call, site);
}

void MadeGroup(MPI_Group group, events::Call call, std::uint64_t site) {
  if (group == MPI_GROUP_NULL || group == MPI_GROUP_EMPTY) return;
  const std::uint32_t number = ++last_object;
  Remember(mpi_groups, {Key(group), 0, number, 0});
  NoteMade(Object::kGroup, number, call, site);
}

void FreedComm(MPI_Comm comm, std::uint64_t site) {
  Known known;
  if (!communicators.Find(Key(comm), &known) || known.number == 0 || known.code == kGone) return;
  known.code = kGone;
  communicators.Update(known);
  NoteFreed(Object::kCommunicator, known.number, site);
}
void FreedWindow(MPI_Win window, std::uint64_t site) {
  Freed(windows, Key(window), Object::kWindow, site);
}
void FreedFile(MPI_File file, std::uint64_t site) { Freed(files, Key(file), Object::kFile, site); }
void FreedOp(MPI_Op op, std::uint64_t site) { Freed(operators, Key(op), Object::kOperator, site); }
void FreedGroup(MPI_Group group, std::uint64_t site) {
  Freed(mpi_groups, Key(group), Object::kGroup, site);
}

std::uint32_t NewRequest() { return ++last_request; }

void RememberRequest(MPI_Request request, std::uint32_t number, std::uint8_t flags) {
  if (request == MPI_REQUEST_NULL) return;
  Remember(requests, {Key(request), 0, number, flags});
}

RequestFacts RequestOf(MPI_Request request) {
  Known known;
  if (request == MPI_REQUEST_NULL || !requests.Find(Key(request), &known)) return {};
  return {known.number, static_cast<std::uint8_t>(known.code)};
}

void ForgetRequest(MPI_Request request) {
  Known known;
  requests.Remove(Key(request), &known);
}

}  // namespace lockstep::watch::preload
