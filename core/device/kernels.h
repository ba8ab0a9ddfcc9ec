// Arithmetic on a device, stream-ordered: each call is enqueued and may run later. `host` and
// `cuda` have them. Memory is the device's or the host's and must live until the stream
// got past the call. Ranges either coincide or do not overlap. Rounding is to nearest even.
#pragma once

#include <cstdint>

#include "core/collective/data_type.h"
#include "core/device/device.h"
#include "core/device/tile.h"

namespace lockstep::device {

using collective::DataType;

class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual void Copy(Stream& stream, void* to, const void* from, std::int64_t bytes) = 0;
  virtual void Zero(Stream& stream, void* to, std::int64_t bytes) = 0;
  // to[i] = from[i] * factor in the type, as PyTorch's mul: the factor is a float for types of up
  // to 32 bits, and 16-bit types are computed in float and rounded once. Floating-point types only.
  virtual void Scale(Stream& stream, DataType type, void* to, const void* from, std::int64_t count,
                     double factor) = 0;
  // to[i] = from[i] / divisor, in the same manner.
  virtual void Divide(Stream& stream, DataType type, void* to, const void* from, std::int64_t count,
                      double divisor) = 0;
  // to[i] += from[i]. Floating-point types only.
  virtual void Add(Stream& stream, DataType type, void* to, const void* from,
                   std::int64_t count) = 0;
  // Between floating-point types.
  virtual void Convert(Stream& stream, DataType to_type, void* to, DataType from_type,
                       const void* from, std::int64_t count) = 0;
  // to[i], or with `add` to[i] +, the tile's element i mod kTile. Floating-point types only.
  virtual void WriteTile(Stream& stream, DataType type, void* to, std::int64_t count,
                         const TileSource& source, bool add) = 0;
  // ++*number.
  virtual void Increment(Stream& stream, std::int64_t* number) = 0;
  // Reads the memory once.
  virtual void Read(Stream& stream, const void* from, std::int64_t bytes) = 0;
  // Work that takes `ns` on a machine that does nothing else: reads `bytes` (> 0) of memory again
  // and again, as often as a calibration says. It takes longer when something else needs the
  // memory or the processor, which is the point of it.
  virtual void Compute(Stream& stream, double ns, const void* memory, std::int64_t bytes) = 0;
  // out = a b for square matrices of `rows` rows, each matrix row by row; floating-point types.
  // `out` overlaps neither. Elements are summed in order, in double for f64 and in float for all
  // other types, and rounded once; a device may fuse products and sums.
  virtual void MatrixProduct(Stream& stream, DataType type, void* out, const void* a, const void* b,
                             std::int64_t rows) = 0;
  // Work that takes `ns` on a machine that does nothing else, as Compute, but products of matrices
  // of its own that stay in a cache: it needs the processor and hardly any memory. On the host,
  // types of 16 bits are multiplied as floats.
  virtual void ComputeProducts(Stream& stream, double ns, DataType type) = 0;
};

}  // namespace lockstep::device
