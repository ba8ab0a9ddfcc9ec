// Maps the struct of a journal's event to an HDF5 table without a copy. Enumerations carry their
// names into the file. Values that no enumerator has are refused when a file is read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "core/journal/message_count.h"
#include "results/store/datasets.h"
#include "results/store/fields.h"
#include "results/store/parts.h"

namespace lockstep::results::store {
namespace {

constexpr const char* kMessagesBefore = "messages_before";
enum class Columns : std::uint8_t { kAll, kOfOlderFile };

constexpr journal::Phase kLastPhase = journal::Phase::kBarrier;

// An enumeration that carries the names of its values.
template <typename E>
hdf5::Handle EnumType(hid_t base, E last) {
  hdf5::Handle type(H5Tenum_create(base), H5Tclose);
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    const auto value = static_cast<std::underlying_type_t<E>>(i);
    H5Tenum_insert(type.get(), std::string(NameOf(static_cast<E>(i))).c_str(), &value);
  }
  return type;
}

void Insert(const hdf5::Handle& compound, const char* name, std::size_t offset, hid_t type) {
  H5Tinsert(compound.get(), name, offset, type);
}

// The layout of JournalEvent itself, so that a history is written without a copy. Lockstep's hosts
// are little endian; on others HDF5 records the order with the native types and converts.
hdf5::Handle EventType(Columns columns = Columns::kAll) {
  hdf5::Handle type(H5Tcreate(H5T_COMPOUND, sizeof(journal::JournalEvent)), H5Tclose);
  Insert(type, "index", offsetof(journal::JournalEvent, index), H5T_NATIVE_UINT64);
  Insert(type, "ticks", offsetof(journal::JournalEvent, ticks), H5T_NATIVE_UINT64);
  Insert(type, "sequence", offsetof(journal::JournalEvent, sequence), H5T_NATIVE_UINT64);
  Insert(type, "count", offsetof(journal::JournalEvent, count), H5T_NATIVE_INT64);
  Insert(type, "nth", offsetof(journal::JournalEvent, nth), H5T_NATIVE_UINT32);
  if (columns == Columns::kAll) {
    Insert(type, kMessagesBefore, offsetof(journal::JournalEvent, messages_before),
           H5T_NATIVE_UINT32);
  }
  Insert(type, "value", offsetof(journal::JournalEvent, value), H5T_NATIVE_INT64);
  Insert(type, "case", offsetof(journal::JournalEvent, case_index), H5T_NATIVE_UINT32);
  Insert(type, "root", offsetof(journal::JournalEvent, root), H5T_NATIVE_INT32);
  Insert(type, "kind", offsetof(journal::JournalEvent, kind),
         EnumType(H5T_NATIVE_UINT16, journal::kLastEventKind).get());
  Insert(type, "communicator", offsetof(journal::JournalEvent, communicator), H5T_NATIVE_UINT16);
  Insert(type, "collective", offsetof(journal::JournalEvent, collective),
         EnumType(H5T_NATIVE_UINT8, kLast<collective::Collective>).get());
  Insert(type, "type", offsetof(journal::JournalEvent, type),
         EnumType(H5T_NATIVE_UINT8, kLast<collective::DataType>).get());
  Insert(type, "reduction", offsetof(journal::JournalEvent, reduction),
         EnumType(H5T_NATIVE_UINT8, kLast<collective::Reduction>).get());
  Insert(type, "phase", offsetof(journal::JournalEvent, phase),
         EnumType(H5T_NATIVE_UINT8, kLastPhase).get());
  return type;
}

// What an older file does not tell can be counted where it has the whole history.
void CountMessages(std::vector<journal::JournalEvent>& events) {
  const bool whole = !events.empty() && events.front().index == 1;
  const bool any = std::ranges::any_of(events, [](const journal::JournalEvent& event) {
    return collective::IsMessage(event.collective);
  });
  if (!any) return;
  std::map<std::uint16_t, journal::MessageCount> counts;
  std::map<std::pair<std::uint16_t, std::uint64_t>, std::uint32_t> known;
  for (journal::JournalEvent& event : events) {
    if (!journal::IsOfCall(event.kind)) continue;
    const auto place = std::pair(event.communicator, event.sequence);
    if (event.kind == journal::EventKind::kEnqueue) {
      if (event.sequence == 0) counts[event.communicator] = {};
      known[place] = counts[event.communicator].Next(event.collective, event.root);
    }
    event.messages_before = whole ? known[place] : journal::kUnknownMessages;
  }
}

// HDF5 hands on what it finds in a file, also what no enumerator has.
void CheckEvents(const std::vector<journal::JournalEvent>& events, const std::string& path,
                 hdf5::File& file) {
  for (std::size_t i = 0; i < events.size() && file.ok(); ++i) {
    const journal::JournalEvent& event = events[i];
    const auto check = [&](auto value, auto last, const char* column) {
      if (value <= last) return;
      file.Note("{} {} in row {} of {} is unknown", column, static_cast<int>(value), i, path);
    };
    check(event.kind, journal::kLastEventKind, "kind");
    check(event.collective, kLast<collective::Collective>, "collective");
    check(event.type, kLast<collective::DataType>, "type");
    check(event.reduction, kLast<collective::Reduction>, "reduction");
    check(event.phase, kLastPhase, "phase");
  }
}

}  // namespace

hdf5::Handle WriteEvents(hdf5::File& file, const std::string& path,
                         const std::vector<journal::JournalEvent>& events) {
  const hdf5::Handle type = EventType();
  return WriteDataset(file, {path, {events.size()}}, type.get(), type.get(), events.data());
}

std::vector<journal::JournalEvent> ReadEvents(hdf5::File& file, const std::string& path) {
  const StoredDataset stored = OpenDataset(file, path, 1);
  if (!file.ok()) return {};
  if (H5Tget_class(stored.type.get()) != H5T_COMPOUND) {
    file.Note("{} is no table", path);
    return {};
  }
  const bool older = H5Tget_member_index(stored.type.get(), kMessagesBefore) < 0;
  const hdf5::Handle type = EventType(older ? Columns::kOfOlderFile : Columns::kAll);
  const int columns = H5Tget_nmembers(type.get());
  for (unsigned i = 0; i < static_cast<unsigned>(columns); ++i) {
    char* name = H5Tget_member_name(type.get(), i);
    const bool missing = H5Tget_member_index(stored.type.get(), name) < 0;
    if (missing) file.Note("column {} of {} is missing", name, path);
    H5free_memory(name);
  }
  if (!file.ok()) return {};
  std::vector<journal::JournalEvent> events(stored.dims[0]);
  ReadDataset(file, stored, path, type.get(), events.data());
  CheckEvents(events, path, file);
  if (older && file.ok()) CountMessages(events);
  return events;
}

}  // namespace lockstep::results::store
