// Rows of described values as a compound dataset. Texts are padded to the longest of their column.
// Columns are found by name when a table is read, so their order does not matter.
#include "results/store/table.h"

#include <algorithm>
#include <cstring>

#include "results/store/attributes.h"
#include "results/store/datasets.h"

namespace lockstep::results::store {
namespace {

// Above this a table is compressed: texts padded to the longest shrink to almost nothing.
constexpr std::size_t kPlainBytes = std::size_t{1} << 20;

std::size_t BytesOf(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return std::max<std::size_t>(1, text->size());
  }
  return std::visit([](const auto& field) { return sizeof(field); }, value);
}

std::size_t RowBytes(const Cells& cells) {
  std::size_t bytes = 0;
  for (const Column& column : cells.columns) bytes += column.bytes;
  return bytes;
}

// Packed: no padding between cells.
hdf5::Handle CompoundType(const Cells& cells, hdf5::Handle (*type_of)(const Value&, std::size_t)) {
  hdf5::Handle compound(H5Tcreate(H5T_COMPOUND, RowBytes(cells)), H5Tclose);
  std::size_t offset = 0;
  for (const Column& column : cells.columns) {
    if (column.bytes == 0) continue;
    const hdf5::Handle type = type_of(column.like, column.bytes);
    H5Tinsert(compound.get(), column.name.c_str(), offset, type.get());
    offset += column.bytes;
  }
  return compound;
}

void PackCell(const Value& value, std::byte* cell) {
  std::visit(
      [&](const auto& field) {
        if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::string>) {
          std::memcpy(cell, field.data(), field.size());
        } else {
          std::memcpy(cell, &field, sizeof(field));
        }
      },
      value);
}

Value UnpackCell(const Column& column, const std::byte* cell) {
  Value value = column.like;
  if (column.bytes == 0) return value;
  std::visit(
      [&](auto& field) {
        using T = std::decay_t<decltype(field)>;
        if constexpr (std::is_same_v<T, std::string>) {
          field.assign(reinterpret_cast<const char*>(cell), column.bytes);
          field.resize(field.find_last_not_of('\0') + 1);
        } else if constexpr (std::is_same_v<T, bool>) {
          field = cell[0] != std::byte{0};
        } else {
          std::memcpy(&field, cell, sizeof(field));
        }
      },
      value);
  return value;
}

// The width of a text column as the file has it. 0: no such column, or one of another type.
std::size_t StoredBytes(hid_t compound, const Column& column) {
  const int index = H5Tget_member_index(compound, column.name.c_str());
  if (index < 0) return 0;
  const hdf5::Handle member(H5Tget_member_type(compound, static_cast<unsigned>(index)), H5Tclose);
  const bool is_text = std::holds_alternative<std::string>(column.like);
  if (is_text != (H5Tget_class(member.get()) == H5T_STRING)) return 0;
  if (!is_text) return BytesOf(column.like);
  return H5Tis_variable_str(member.get()) > 0 ? 0 : H5Tget_size(member.get());
}

}  // namespace

void WriteCells(hdf5::File& file, const std::string& path, Cells cells) {
  if (!file.ok()) return;
  const std::size_t width = cells.columns.size();
  for (Column& column : cells.columns) column.bytes = BytesOf(column.like);
  for (std::size_t i = 0; i < cells.values.size(); ++i) {
    Column& column = cells.columns[i % width];
    column.bytes = std::max(column.bytes, BytesOf(cells.values[i]));
  }
  std::vector<std::byte> packed(RowBytes(cells) * cells.rows());
  std::byte* cell = packed.data();
  for (std::size_t i = 0; i < cells.values.size(); ++i) {
    PackCell(cells.values[i], cell);
    cell += cells.columns[i % width].bytes;
  }
  const hdf5::Handle file_type = CompoundType(cells, FileType);
  const hdf5::Handle memory_type = CompoundType(cells, MemoryType);
  const Dataset dataset = {path, {cells.rows()}, packed.size() > kPlainBytes};
  const hdf5::Handle written =
      WriteDataset(file, dataset, file_type.get(), memory_type.get(), packed.data());
  AttributeSink attributes(written.get(), path, file);
  for (const Column& column : cells.columns) {
    if (column.units.empty()) continue;
    attributes.Put((column.name + ".units").c_str(), column.units, "");
  }
}

void ReadCells(hdf5::File& file, const std::string& path, Cells& cells) {
  const StoredDataset stored = OpenDataset(file, path, 1);
  if (!file.ok()) return;
  if (H5Tget_class(stored.type.get()) != H5T_COMPOUND) {
    return file.Note("{} is no table", path);
  }
  for (Column& column : cells.columns) {
    column.bytes = StoredBytes(stored.type.get(), column);
    const bool lacks = H5Tget_member_index(stored.type.get(), column.name.c_str()) < 0;
    if (column.bytes == 0 && !(column.later && lacks)) {
      return file.Note("column {} of {} is missing or of another type", column.name, path);
    }
  }
  std::vector<std::byte> packed(RowBytes(cells) * stored.dims[0]);
  const hdf5::Handle memory_type = CompoundType(cells, MemoryType);
  ReadDataset(file, stored, path, memory_type.get(), packed.data());
  if (!file.ok()) return;
  const std::byte* cell = packed.data();
  cells.values.reserve(stored.dims[0] * cells.columns.size());
  for (std::size_t row = 0; row < stored.dims[0]; ++row) {
    for (const Column& column : cells.columns) {
      cells.values.push_back(UnpackCell(column, cell));
      cell += column.bytes;
    }
  }
}

void CellSource::Refuse(const char* name, const Value& value) {
  file_.Note("column {} of {} has the unknown value '{}'", name, path_,
             std::get<std::string>(value));
}

}  // namespace lockstep::results::store
