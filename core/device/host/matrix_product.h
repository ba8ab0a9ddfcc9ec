// Products of square matrices on the host, plainly.
#pragma once

#include <cstdint>

#include "core/collective/data_type.h"

namespace lockstep::device::host {

// out = a b, as Kernels::MatrixProduct says it; floating-point types.
void MultiplyMatrices(collective::DataType type, void* out, const void* a, const void* b,
                      std::int64_t rows);

// Rows of products of small matrices for about `ns`, by a calibration; it measures once for floats
// and once for doubles (kF64), some milliseconds when first called.
void MultiplyFor(double ns, collective::DataType type);

}  // namespace lockstep::device::host
