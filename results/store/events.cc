#include "results/store/events.h"

#include <fmt/core.h>

#include <cstddef>
#include <string_view>

#include "results/store/datasets.h"
#include "results/store/fields.h"

namespace lockstep {
namespace {

constexpr Phase kLastPhase = Phase::kBarrier;

// An enumeration that carries the names of its values.
template <typename E>
Handle EnumType(hid_t base, E last) {
  Handle type(H5Tenum_create(base), H5Tclose);
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<std::underlying_type_t<E>>(i);
    H5Tenum_insert(type.get(), std::string(NameOf(static_cast<E>(i))).c_str(), &value);
  }
  return type;
}

void Insert(const Handle& compound, const char* name, std::size_t offset, hid_t type) {
  H5Tinsert(compound.get(), name, offset, type);
}

// The layout of JournalEvent itself, so that a history is written without a copy. Lockstep's hosts
// are little endian; on others HDF5 records the order with the native types and converts.
Handle EventType() {
  Handle type(H5Tcreate(H5T_COMPOUND, sizeof(JournalEvent)), H5Tclose);
  Insert(type, "index", offsetof(JournalEvent, index), H5T_NATIVE_UINT64);
  Insert(type, "ticks", offsetof(JournalEvent, ticks), H5T_NATIVE_UINT64);
  Insert(type, "sequence", offsetof(JournalEvent, sequence), H5T_NATIVE_UINT64);
  Insert(type, "count", offsetof(JournalEvent, count), H5T_NATIVE_INT64);
  Insert(type, "nth", offsetof(JournalEvent, nth), H5T_NATIVE_UINT64);
  Insert(type, "value", offsetof(JournalEvent, value), H5T_NATIVE_INT64);
  Insert(type, "case", offsetof(JournalEvent, case_index), H5T_NATIVE_UINT32);
  Insert(type, "root", offsetof(JournalEvent, root), H5T_NATIVE_INT32);
  Insert(type, "kind", offsetof(JournalEvent, kind),
         EnumType(H5T_NATIVE_UINT16, kLastEventKind).get());
  Insert(type, "communicator", offsetof(JournalEvent, communicator), H5T_NATIVE_UINT16);
  Insert(type, "collective", offsetof(JournalEvent, collective),
         EnumType(H5T_NATIVE_UINT8, kLast<Collective>).get());
  Insert(type, "type", offsetof(JournalEvent, type),
         EnumType(H5T_NATIVE_UINT8, kLast<DataType>).get());
  Insert(type, "reduction", offsetof(JournalEvent, reduction),
         EnumType(H5T_NATIVE_UINT8, kLast<Reduction>).get());
  Insert(type, "phase", offsetof(JournalEvent, phase),
         EnumType(H5T_NATIVE_UINT8, kLastPhase).get());
  return type;
}

// HDF5 hands on what it finds in a file, also what no enumerator has.
void CheckEvents(const std::vector<JournalEvent>& events, const std::string& path,
                 Trouble& trouble) {
  for (std::size_t i = 0; i < events.size() && trouble.ok(); ++i) {
    const JournalEvent& event = events[i];
    const auto check = [&](auto value, auto last, const char* column) {
      if (value <= last) return;
      trouble.Note(fmt::format("{} {} in row {} of {} is unknown", column, static_cast<int>(value),
                               i, path));
    };
    check(event.kind, kLastEventKind, "kind");
    check(event.collective, kLast<Collective>, "collective");
    check(event.type, kLast<DataType>, "type");
    check(event.reduction, kLast<Reduction>, "reduction");
    check(event.phase, kLastPhase, "phase");
  }
}

}  // namespace

Handle WriteEvents(hid_t file, const std::string& path, const std::vector<JournalEvent>& events,
                   Trouble& trouble) {
  const Handle type = EventType();
  return WriteDataset(file, {path, {events.size()}}, type.get(), type.get(), events.data(),
                      trouble);
}

std::vector<JournalEvent> ReadEvents(hid_t file, const std::string& path, Trouble& trouble) {
  const StoredDataset stored = OpenDataset(file, path, 1, trouble);
  if (!trouble.ok()) return {};
  if (H5Tget_class(stored.type.get()) != H5T_COMPOUND) {
    trouble.Note(fmt::format("{} is no table", path));
    return {};
  }
  const Handle type = EventType();
  const int columns = H5Tget_nmembers(type.get());
  for (unsigned i = 0; i < static_cast<unsigned>(columns); ++i) {
    char* name = H5Tget_member_name(type.get(), i);
    const bool missing = H5Tget_member_index(stored.type.get(), name) < 0;
    if (missing) trouble.Note(fmt::format("column {} of {} is missing", name, path));
    H5free_memory(name);
  }
  if (!trouble.ok()) return {};
  std::vector<JournalEvent> events(stored.dims[0]);
  ReadDataset(stored, path, type.get(), events.data(), trouble);
  CheckEvents(events, path, trouble);
  return events;
}

}  // namespace lockstep
