// Arithmetic on the host, at memory bandwidth.
#pragma once

#include <cstdint>

#include "core/device/kernels.h"

namespace lockstep::device::host {

// Not final: a device whose time is not the clock's overrides Compute
// and ComputeProducts.
class HostKernels : public Kernels {
 public:
  void Copy(Stream& stream, void* to, const void* from, std::int64_t bytes) override;
  void Zero(Stream& stream, void* to, std::int64_t bytes) override;
  void Scale(Stream& stream, DataType type, void* to, const void* from, std::int64_t count,
             double factor) override;
  void Divide(Stream& stream, DataType type, void* to, const void* from, std::int64_t count,
              double divisor) override;
  void Add(Stream& stream, DataType type, void* to, const void* from, std::int64_t count) override;
  void Convert(Stream& stream, DataType to_type, void* to, DataType from_type, const void* from,
               std::int64_t count) override;
  void WriteTile(Stream& stream, DataType type, void* to, std::int64_t count,
                 const TileSource& source, bool add) override;
  void Increment(Stream& stream, std::int64_t* number) override;
  void Read(Stream& stream, const void* from, std::int64_t bytes) override;
  void Compute(Stream& stream, double ns, const void* memory, std::int64_t bytes) override;
  void MatrixProduct(Stream& stream, DataType type, void* out, const void* a, const void* b,
                     std::int64_t rows) override;
  void ComputeProducts(Stream& stream, double ns, DataType type) override;
};

// Ranges of 16-bit floating-point numbers to float and back, as core/collective/half.h does it for
// one, at memory bandwidth where the processor has F16C. Ranges do not overlap.
void FloatsFromF16(const std::uint16_t* from, float* to, std::int64_t count);
void F16FromFloats(const float* from, std::uint16_t* to, std::int64_t count);
void FloatsFromBf16(const std::uint16_t* from, float* to, std::int64_t count);
void Bf16FromFloats(const float* from, std::uint16_t* to, std::int64_t count);

}  // namespace lockstep::device::host
