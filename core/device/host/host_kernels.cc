// Arithmetic as plain loops that compilers turn into vectors. Floats of 16 bits go through blocks
// of float and are rounded once. Work of a given time reads memory at a rate that was measured once
// for each size. Products of matrices are plain, row by row.
#include "core/device/host/host_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/device/host/host_tile.h"

namespace lockstep::device::host {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements that are converted at a time

// Elements of a type as the floats that they are computed in. Wider types need no conversion.
void Widen(DataType type, const void* from, float* to, std::int64_t count) {
  const auto* words = static_cast<const std::uint16_t*>(from);
  type == DataType::kF16 ? FloatsFromF16(words, to, count) : FloatsFromBf16(words, to, count);
}
void Narrow(DataType type, const float* from, void* to, std::int64_t count) {
  auto* words = static_cast<std::uint16_t*>(to);
  type == DataType::kF16 ? F16FromFloats(from, words, count) : Bf16FromFloats(from, words, count);
}

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

// Of several rounds of the work.
double FastestNs(auto work) {
  constexpr int kRounds = 5;
  static const TickScale scale = CalibrateTicks();
  double fastest_ns = 0;
  for (int round = 0; round <= kRounds; ++round) {  // the first one warms up
    const Ticks begin = NowTicks();
    work();
    const double ns = scale.DurationNs(begin, NowTicks());
    if (round == 1 || (round > 1 && ns < fastest_ns)) fastest_ns = ns;
  }
  return std::max(fastest_ns, 1.0);
}

template <typename Wide>
double MeasureRowNs(const SmallMatrices<Wide>& matrices) {
  constexpr std::int64_t kMeasuredRows = 512;
  return FastestNs([&] { matrices.Multiply(kMeasuredRows); }) / kMeasuredRows;
}

template <typename Wide>
void SpendOnRows(double ns) {
  static const SmallMatrices<Wide> matrices;
  static const double row_ns = MeasureRowNs(matrices);
  matrices.Multiply(std::llround(ns / row_ns));
}

// out = a b, as Kernels::MatrixProduct says it; floating-point types.
void MultiplyMatrices(DataType type, void* out, const void* a, const void* b, std::int64_t rows) {
  if (type == DataType::kF32) return MultiplyWide<float>(out, a, b, rows);
  if (type == DataType::kF64) return MultiplyWide<double>(out, a, b, rows);
  LOCKSTEP_CHECK(type == DataType::kF16 || type == DataType::kBf16,
                 "matrices are of floating-point types");
  std::vector<float> left(static_cast<std::size_t>(rows * rows)), right(left), product(left);
  Widen(type, a, left.data(), rows * rows);
  Widen(type, b, right.data(), rows * rows);
  MultiplyWide<float>(product.data(), left.data(), right.data(), rows);
  Narrow(type, product.data(), out, rows * rows);
}

// Rows of products of small matrices for about `ns`, by a calibration; it measures once for floats
// and once for doubles (kF64), some milliseconds when first called.
void MultiplyFor(double ns, DataType type) {
  type == DataType::kF64 ? SpendOnRows<double>(ns) : SpendOnRows<float>(ns);
}

template <typename Word, typename Function>
void ApplyTo(Word* out, const Word* in, std::int64_t count, Function function) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = function(out[i], in[i]);
}

template <typename Function>
void ApplyToHalves(DataType type, void* to, const void* from, std::int64_t count,
                   Function function) {
  float out[kBlock];
  float in[kBlock];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, count - begin);
    auto* words = static_cast<std::uint16_t*>(to) + begin;
    Widen(type, static_cast<const std::uint16_t*>(from) + begin, in, length);
    Widen(type, words, out, length);
    ApplyTo(out, in, length, function);
    Narrow(type, out, words, length);
  }
}

// Applies `function` to elements of two ranges of one type.
template <typename Function>
void Elementwise(Stream& stream, DataType type, void* to, const void* from, std::int64_t count,
                 Function function) {
  LOCKSTEP_CHECK(collective::IsComputeType(type), "arithmetic is for f16, bf16, f32 and f64");
  stream.Do([=] {
    if (type == DataType::kF32) {
      ApplyTo(static_cast<float*>(to), static_cast<const float*>(from), count, function);
    } else if (type == DataType::kF64) {
      ApplyTo(static_cast<double*>(to), static_cast<const double*>(from), count, function);
    } else {
      ApplyToHalves(type, to, from, count, function);
    }
  });
}

// Between two different floating-point types: every pair fits through float.
void ConvertBlock(DataType to_type, std::byte* to, DataType from_type, const std::byte* from,
                  std::int64_t count) {
  float floats[kBlock];
  if (from_type == DataType::kF64) {
    const auto* doubles = reinterpret_cast<const double*>(from);
    for (std::int64_t i = 0; i < count; ++i) floats[i] = static_cast<float>(doubles[i]);
  } else if (from_type == DataType::kF32) {
    std::memcpy(floats, from, static_cast<std::size_t>(count) * sizeof(float));
  } else {
    Widen(from_type, from, floats, count);
  }
  if (to_type == DataType::kF64) {
    auto* doubles = reinterpret_cast<double*>(to);
    for (std::int64_t i = 0; i < count; ++i) doubles[i] = static_cast<double>(floats[i]);
  } else if (to_type == DataType::kF32) {
    std::memcpy(to, floats, static_cast<std::size_t>(count) * sizeof(float));
  } else {
    Narrow(to_type, floats, to, count);
  }
}

// Keeps the compiler from dropping a loop whose result nobody wants.
inline void Consume(std::uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

void ReadOnce(const void* from, std::int64_t bytes) {
  const auto* bytes_from = static_cast<const char*>(from);
  std::uint64_t sum = 0;
  std::int64_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes_from + i, sizeof(word));
    sum ^= word;
  }
  for (; i < bytes; ++i) sum ^= static_cast<unsigned char>(bytes_from[i]);
  Consume(sum);
}

// Bytes a nanosecond that ReadOnce reaches in `bytes` of memory: small ranges stay in a cache, so
// the rate depends on the size. Measured once for each power of two from 4 KiB to 64 MiB, when
// asked for: all of them would keep a processor busy for a tenth of a second.
constexpr std::int64_t kSmallestRange = 4 << 10;
constexpr std::int64_t kLargestRange = 64 << 20;

double MeasureRate(const char* memory, std::int64_t bytes) {
  const std::int64_t passes = std::max<std::int64_t>(1, (std::int64_t{4} << 20) / bytes);
  const double ns = FastestNs([&] {
    for (std::int64_t pass = 0; pass < passes; ++pass) ReadOnce(memory, bytes);
  });
  return static_cast<double>(passes * bytes) / ns;
}

double ReadRate(std::int64_t bytes) {
  struct Range {
    std::once_flag measured;
    double rate = 0;
  };
  static std::array<Range, 15> ranges;
  static_assert(kSmallestRange << (ranges.size() - 1) == kLargestRange);
  std::size_t index = 0;
  while (index + 1 < ranges.size() && kSmallestRange << index < bytes) ++index;
  Range& range = ranges[index];
  std::call_once(range.measured, [&range, size = kSmallestRange << index] {
    const std::vector<char> memory(static_cast<std::size_t>(size), 1);
    range.rate = MeasureRate(memory.data(), size);
  });
  return range.rate;
}

// Below this a pass is mostly the call, so it is repeated over the same few bytes.
constexpr std::int64_t kFewestBytesAPass = 64;

}  // namespace

void HostKernels::Copy(Stream& stream, void* to, const void* from, std::int64_t bytes) {
  if (to == from || bytes == 0) return;
  stream.Do([=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
}

void HostKernels::Zero(Stream& stream, void* to, std::int64_t bytes) {
  if (bytes == 0) return;
  stream.Do([=] { std::memset(to, 0, static_cast<std::size_t>(bytes)); });
}

void HostKernels::Scale(Stream& stream, DataType type, void* to, const void* from,
                        std::int64_t count, double factor) {
  Elementwise(stream, type, to, from, count, [factor]<typename Wide>(Wide, Wide value) {
    return value * static_cast<Wide>(factor);
  });
}

void HostKernels::Divide(Stream& stream, DataType type, void* to, const void* from,
                         std::int64_t count, double divisor) {
  Elementwise(stream, type, to, from, count, [divisor]<typename Wide>(Wide, Wide value) {
    return value / static_cast<Wide>(divisor);
  });
}

void HostKernels::Add(Stream& stream, DataType type, void* to, const void* from,
                      std::int64_t count) {
  Elementwise(stream, type, to, from, count,
              []<typename Wide>(Wide sum, Wide value) { return sum + value; });
}

void HostKernels::Convert(Stream& stream, DataType to_type, void* to, DataType from_type,
                          const void* from, std::int64_t count) {
  if (to_type == from_type) return Copy(stream, to, from, count * collective::SizeOf(to_type));
  LOCKSTEP_CHECK(collective::IsComputeType(to_type) && collective::IsComputeType(from_type),
                 "conversion is between floating-point types");
  stream.Do([=] {
    for (std::int64_t begin = 0; begin < count; begin += kBlock) {
      ConvertBlock(to_type, static_cast<std::byte*>(to) + begin * collective::SizeOf(to_type),
                   from_type,
                   static_cast<const std::byte*>(from) + begin * collective::SizeOf(from_type),
                   std::min(kBlock, count - begin));
    }
  });
}

void HostKernels::WriteTile(Stream& stream, DataType type, void* to, std::int64_t count,
                            const TileSource& source, bool add) {
  LOCKSTEP_CHECK(collective::IsComputeType(type), "tiles are of floating-point numbers");
  stream.Do([=] { PutTile(type, to, count, MakeTile(source, count), add); });
}

void HostKernels::Increment(Stream& stream, std::int64_t* number) {
  stream.Do([number] { ++*number; });
}

void HostKernels::Read(Stream& stream, const void* from, std::int64_t bytes) {
  stream.Do([=] { ReadOnce(from, bytes); });
}

void HostKernels::Compute(Stream& stream, double ns, const void* memory, std::int64_t bytes) {
  LOCKSTEP_CHECK(bytes > 0, "computing needs memory to read");
  stream.Do([=] {
    const double wanted = ns * ReadRate(std::max(bytes, kSmallestRange));
    std::int64_t left = static_cast<std::int64_t>(wanted);
    while (left > 0) {
      const std::int64_t pass = std::min(left, bytes);
      ReadOnce(memory, pass);
      left -= std::max(pass, kFewestBytesAPass);
    }
  });
}

void HostKernels::MatrixProduct(Stream& stream, DataType type, void* out, const void* a,
                                const void* b, std::int64_t rows) {
  stream.Do([=] { MultiplyMatrices(type, out, a, b, rows); });
}

void HostKernels::ComputeProducts(Stream& stream, double ns, DataType type) {
  stream.Do([=] { MultiplyFor(ns, type); });
}

}  // namespace lockstep::device::host
