// Arithmetic on the host, at memory bandwidth.
#pragma once

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

}  // namespace lockstep::device::host
