// One row a type: its size and its names in Lockstep, nccl-tests and PyTorch. Rows stand in the
// order of the enumeration, so that a type is an index.
#include "core/collective/data_type.h"

#include <fmt/core.h>

#include <array>
#include <string>

#include "core/base/check.h"

namespace lockstep::collective {
namespace {

struct Row {
  DataType type;
  std::int64_t bytes;
  std::string_view name;
  std::string_view nccl_name;
  std::string_view torch_name;
};

constexpr std::array<Row, kDataTypeCount> kTypes = {
    {{DataType::kF16, 2, "f16", "half", "Half"},
     {DataType::kBf16, 2, "bf16", "bfloat16", "BFloat16"},
     {DataType::kF32, 4, "f32", "float", "Float"},
     {DataType::kF64, 8, "f64", "double", "Double"},
     {DataType::kI8, 1, "i8", "int8", "Char"},
     {DataType::kI32, 4, "i32", "int32", "Int"},
     {DataType::kI64, 8, "i64", "int64", "Long"},
     {DataType::kU8, 1, "u8", "uint8", "Byte"},
     {DataType::kF8E4M3, 1, "f8e4m3", "f8e4m3", "Float8_e4m3fn"},
     {DataType::kF8E5M2, 1, "f8e5m2", "f8e5m2", "Float8_e5m2"}}};

const Row& RowOf(DataType type) {
  const auto index = static_cast<std::size_t>(type);
  LOCKSTEP_CHECK(index < kTypes.size(), "a DataType that is not in the table");
  return kTypes[index];
}

}  // namespace

std::int64_t SizeOf(DataType type) { return RowOf(type).bytes; }

std::string_view NameOf(DataType type) { return RowOf(type).name; }

std::string_view NcclNameOf(DataType type) { return RowOf(type).nccl_name; }

std::string_view TorchNameOf(DataType type) { return RowOf(type).torch_name; }

const std::vector<DataType>& AllDataTypes() {
  static const std::vector<DataType> all = [] {
    std::vector<DataType> types;
    for (const Row& row : kTypes) types.push_back(row.type);
    return types;
  }();
  return all;
}

Result<DataType> ParseDataType(std::string_view option, std::string_view text) {
  std::string names;
  for (const Row& row : kTypes) {
    if (text == row.name || text == row.nccl_name) return row.type;
    names += fmt::format(" {}", row.name);
  }
  return InvalidInput("{}: '{}' is not a data type; choose one of:{}", option, text, names);
}

}  // namespace lockstep::collective
