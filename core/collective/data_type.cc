#include "core/collective/data_type.h"

#include <fmt/core.h>

#include <array>
#include <string>

#include "core/base/check.h"

namespace lockstep {
namespace {

struct Row {
  DataType type;
  std::int64_t bytes;
  std::string_view name;
  std::string_view nccl_name;  // as nccl-tests' -d spells it
};

constexpr std::array<Row, 8> kRows = {{{DataType::kF16, 2, "f16", "half"},
                                       {DataType::kBf16, 2, "bf16", "bfloat16"},
                                       {DataType::kF32, 4, "f32", "float"},
                                       {DataType::kF64, 8, "f64", "double"},
                                       {DataType::kI8, 1, "i8", "int8"},
                                       {DataType::kI32, 4, "i32", "int32"},
                                       {DataType::kI64, 8, "i64", "int64"},
                                       {DataType::kU8, 1, "u8", "uint8"}}};

const Row& RowOf(DataType type) {
  const auto index = static_cast<std::size_t>(type);
  LOCKSTEP_CHECK(index < kRows.size(), "a DataType that is not in the table");
  return kRows[index];
}

}  // namespace

std::int64_t SizeOf(DataType type) { return RowOf(type).bytes; }

std::string_view NameOf(DataType type) { return RowOf(type).name; }

const std::vector<DataType>& AllDataTypes() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<DataType>;
    for (const Row& row : kRows) all->push_back(row.type);
    return all;
  }();
  return *kAll;
}

Result<DataType> ParseDataType(std::string_view option, std::string_view text) {
  std::string names;
  for (const Row& row : kRows) {
    if (text == row.name || text == row.nccl_name) return row.type;
    names += fmt::format(" {}", row.name);
  }
  return InvalidInput(
      fmt::format("{}: '{}' is not a data type; choose one of:{}", option, text, names));
}

}  // namespace lockstep
