// Plain products of matrices, row by row, and as many rows as fill a given time. The calibration
// multiplies small matrices that stay in the first caches, once a width of float.
#include "core/device/host/matrix_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/device/host/half_conversion.h"

namespace lockstep::device::host {
namespace {

// out[j] = sum over k of a[k] b[k][j]: the inner loop runs along memory, and the sums are in order.
template <typename Wide>
void MultiplyRow(const Wide* a, const Wide* b, Wide* out, std::int64_t rows) {
  std::fill_n(out, rows, Wide{0});
  for (std::int64_t k = 0; k < rows; ++k) {
    const Wide factor = a[k];
    const Wide* const row = b + k * rows;
    for (std::int64_t j = 0; j < rows; ++j) out[j] += factor * row[j];
  }
}

template <typename Wide>
void MultiplyWide(void* out, const void* a, const void* b, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    MultiplyRow(static_cast<const Wide*>(a) + row * rows, static_cast<const Wide*>(b),
                static_cast<Wide*>(out) + row * rows, rows);
  }
}

std::vector<float> Widened(collective::DataType type, const void* from, std::int64_t count) {
  std::vector<float> floats(static_cast<std::size_t>(count));
  const auto* words = static_cast<const std::uint16_t*>(from);
  type == collective::DataType::kF16 ? FloatsFromF16(words, floats.data(), count)
                                     : FloatsFromBf16(words, floats.data(), count);
  return floats;
}

// The matrices that time is spent on: in the first caches, and of values that stay finite.
constexpr std::int64_t kRows = 64;

template <typename Wide>
struct SmallMatrices {
  std::array<Wide, kRows * kRows> a;
  std::array<Wide, kRows * kRows> b;

  SmallMatrices() {
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<Wide>(i % 7) / 4;
      b[i] = static_cast<Wide>(i % 5) / 4;
    }
  }
  void Multiply(std::int64_t count) const {
    std::array<Wide, kRows> out;
    for (std::int64_t i = 0; i < count; ++i) {
      MultiplyRow(a.data() + i % kRows * kRows, b.data(), out.data(), kRows);
      // Keeps the compiler from dropping a product that nobody wants.
      asm volatile("" : : "r"(out.data()) : "memory");
    }
  }
};

template <typename Wide>
double MeasureRowNs(const SmallMatrices<Wide>& matrices) {
  constexpr int kRounds = 5;
  constexpr std::int64_t kMeasuredRows = 512;
  const TickScale scale = CalibrateTicks();
  double fastest_ns = 0;
  for (int round = 0; round <= kRounds; ++round) {  // the first one warms up
    const Ticks begin = NowTicks();
    matrices.Multiply(kMeasuredRows);
    const double ns = scale.DurationNs(begin, NowTicks());
    if (round == 1 || (round > 1 && ns < fastest_ns)) fastest_ns = ns;
  }
  return std::max(fastest_ns, 1.0) / static_cast<double>(kMeasuredRows);
}

template <typename Wide>
void SpendOnRows(double ns) {
  static const SmallMatrices<Wide> matrices;
  static const double row_ns = MeasureRowNs(matrices);
  matrices.Multiply(std::llround(ns / row_ns));
}

}  // namespace

void MultiplyMatrices(collective::DataType type, void* out, const void* a, const void* b,
                      std::int64_t rows) {
  if (type == collective::DataType::kF32) return MultiplyWide<float>(out, a, b, rows);
  if (type == collective::DataType::kF64) return MultiplyWide<double>(out, a, b, rows);
  LOCKSTEP_CHECK(type == collective::DataType::kF16 || type == collective::DataType::kBf16,
                 "matrices are of floating-point types");
  const std::vector<float> left = Widened(type, a, rows * rows);
  const std::vector<float> right = Widened(type, b, rows * rows);
  std::vector<float> product(left.size());
  MultiplyWide<float>(product.data(), left.data(), right.data(), rows);
  auto* words = static_cast<std::uint16_t*>(out);
  type == collective::DataType::kF16 ? F16FromFloats(product.data(), words, rows * rows)
                                     : Bf16FromFloats(product.data(), words, rows * rows);
}

void MultiplyFor(double ns, collective::DataType type) {
  type == collective::DataType::kF64 ? SpendOnRows<double>(ns) : SpendOnRows<float>(ns);
}

}  // namespace lockstep::device::host
