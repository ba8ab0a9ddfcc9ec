// Ranges of 16-bit floating-point numbers to float and back, as core/collective/half.h does it for
// one, at memory bandwidth where the processor has F16C. Ranges do not overlap.
#pragma once

#include <cstdint>

namespace lockstep::device::host {

void FloatsFromF16(const std::uint16_t* from, float* to, std::int64_t count);
void F16FromFloats(const float* from, std::uint16_t* to, std::int64_t count);
void FloatsFromBf16(const std::uint16_t* from, float* to, std::int64_t count);
void Bf16FromFloats(const float* from, std::uint16_t* to, std::int64_t count);

}  // namespace lockstep::device::host
