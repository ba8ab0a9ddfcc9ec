// Element types of a collective, named as the field names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace lockstep::collective {

enum class DataType : std::uint8_t {
  kF16,
  kBf16,
  kF32,
  kF64,
  kI8,
  kI32,
  kI64,
  kU8,
  kF8E4M3,
  kF8E5M2
};

inline constexpr DataType kLastDataType = DataType::kF8E5M2;
inline constexpr std::size_t kDataTypeCount = static_cast<std::size_t>(kLastDataType) + 1;

std::int64_t SizeOf(DataType type);           // bytes of one element
std::string_view NameOf(DataType type);       // "f16", "bf16", "f32", …
std::string_view NcclNameOf(DataType type);   // as nccl-tests' -d spells it: "half", …
std::string_view TorchNameOf(DataType type);  // c10::toString(ScalarType): "Half", …
// What gradients are made of and kernels compute with.
inline bool IsComputeType(DataType type) {
  return type == DataType::kF16 || type == DataType::kBf16 || type == DataType::kF32 ||
         type == DataType::kF64;
}
// What is only passed on and reduced.
inline bool IsFloat8(DataType type) {
  return type == DataType::kF8E4M3 || type == DataType::kF8E5M2;
}
const std::vector<DataType>& AllDataTypes();  // in the order of the enum

// Accepts Lockstep's names and nccl-tests' (half, bfloat16, float, double, int8, int32, int64,
// uint8; f8e4m3 and f8e5m2 are the same). The error names `option`, the text and the valid names.
Result<DataType> ParseDataType(std::string_view option, std::string_view text);

}  // namespace lockstep::collective
