// Element types of a collective, named as the field names them.
#ifndef LOCKSTEP_CORE_COLLECTIVE_DATA_TYPE_H_
#define LOCKSTEP_CORE_COLLECTIVE_DATA_TYPE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace lockstep {

enum class DataType : std::uint8_t { kF16, kBf16, kF32, kF64, kI8, kI32, kI64, kU8 };

std::int64_t SizeOf(DataType type);           // bytes of one element
std::string_view NameOf(DataType type);       // "f16", "bf16", "f32", …
const std::vector<DataType>& AllDataTypes();  // in the order of the enum

// Accepts Lockstep's names and nccl-tests' (half, bfloat16, float, double, int8, int32, int64,
// uint8). The error names `option`, the text and the valid names.
Result<DataType> ParseDataType(std::string_view option, std::string_view text);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_COLLECTIVE_DATA_TYPE_H_
