// PowerSGD's matrix products and Gram-Schmidt as plain loops over host memory. Sums run in eight
// lanes, which a compiler turns into vectors. It relies on columns being contiguous.
#include "core/ddp/low_rank.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace lockstep::ddp {
namespace {

// In eight partial sums, which a compiler keeps in vector registers.
float Dot(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  float sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  float total = 0;
  for (const float sum : sums) total += sum;
  return total;
}

void AddScaled(float* to, const float* from, float factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

}  // namespace

LowRankMatrix MatrixOf(const TensorInfo& info, int rank) {
  LowRankMatrix matrix;
  matrix.rows = info.shape.empty() ? 1 : info.shape[0];
  matrix.columns = matrix.rows == 0 ? 0 : info.numel / matrix.rows;
  matrix.rank = std::min({matrix.rows, matrix.columns, std::int64_t{rank}});
  return matrix;
}

bool IsWorthCompressing(const LowRankMatrix& matrix, double min_compression_rate) {
  const auto compressed = static_cast<double>((matrix.rows + matrix.columns) * matrix.rank);
  return compressed * min_compression_rate < static_cast<double>(matrix.rows * matrix.columns);
}

// Box and Muller's transformation.
void FillNormal(float* values, std::int64_t count, Random& random) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    values[i] = static_cast<float>(radius * std::cos(2 * std::numbers::pi * random.Uniform()));
  }
}

void Orthogonalize(float* columns, std::int64_t length, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) {
    float* const column = columns + c * length;
    const float norm = std::sqrt(Dot(column, column, length));
    if (norm == 0) continue;
    for (std::int64_t i = 0; i < length; ++i) column[i] /= norm;
    for (std::int64_t rest = c + 1; rest < count; ++rest) {
      float* const other = columns + rest * length;
      AddScaled(other, column, -Dot(column, other, length), length);
    }
  }
}

void MultiplyByQ(const LowRankMatrix& matrix, const float* m, const float* q, float* p) {
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t k = 0; k < matrix.rank; ++k) {
      p[k * matrix.rows + row] =
          Dot(m + row * matrix.columns, q + k * matrix.columns, matrix.columns);
    }
  }
}

void MultiplyTransposedByP(const LowRankMatrix& matrix, const float* m, const float* p, float* q) {
  std::fill(q, q + matrix.columns * matrix.rank, 0.0f);
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t k = 0; k < matrix.rank; ++k) {
      AddScaled(q + k * matrix.columns, m + row * matrix.columns, p[k * matrix.rows + row],
                matrix.columns);
    }
  }
}

void Decompress(const LowRankMatrix& matrix, const float* p, const float* q, float* m) {
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    float* const to = m + row * matrix.columns;
    std::fill(to, to + matrix.columns, 0.0f);
    for (std::int64_t k = 0; k < matrix.rank; ++k) {
      AddScaled(to, q + k * matrix.columns, p[k * matrix.rows + row], matrix.columns);
    }
  }
}

void Pack(const float* bucket, const std::vector<PlainRange>& ranges, float* packed) {
  for (const PlainRange& range : ranges) {
    std::copy_n(bucket + range.bucket, range.count, packed + range.packed);
  }
}

void Unpack(const float* packed, const std::vector<PlainRange>& ranges, float* bucket) {
  for (const PlainRange& range : ranges) {
    std::copy_n(packed + range.packed, range.count, bucket + range.bucket);
  }
}

void DivideBy(float divisor, std::vector<float>& values) {
  for (float& value : values) value /= divisor;
}

void AddError(float* data, const std::vector<float>& error, std::vector<float>& before) {
  for (std::size_t i = 0; i < error.size(); ++i) {
    data[i] += error[i];
    before[i] = data[i];
  }
}

void KeepError(const float* data, const std::vector<float>& before, std::vector<float>& error) {
  for (std::size_t i = 0; i < error.size(); ++i) error[i] = before[i] - data[i];
}

}  // namespace lockstep::ddp
