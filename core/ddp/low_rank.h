// The arithmetic of PowerSGD, on the host. P and Q are kept column by column. Internal to
// power_sgd.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/ddp/module.h"

namespace lockstep::ddp {

// A tensor as a matrix of shape[0] rows, and where it and its factors lie (in elements).
struct LowRankMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;
  std::int64_t offset = 0;  // in the bucket
  std::int64_t p = 0;       // rows x rank
  std::int64_t q = 0;       // columns x rank
};
// A tensor that is not compressed: from `bucket` on in the bucket, from `packed` on among those.
struct PlainRange {
  std::int64_t bucket = 0;
  std::int64_t packed = 0;
  std::int64_t count = 0;
};

LowRankMatrix MatrixOf(const TensorInfo& info, int rank);
// (n + m) r rate < n m.
bool IsWorthCompressing(const LowRankMatrix& matrix, double min_compression_rate);

void FillNormal(float* values, std::int64_t count, Random& random);
// Gram-Schmidt; a column of zeros stays.
void Orthogonalize(float* columns, std::int64_t length, std::int64_t count);
void MultiplyByQ(const LowRankMatrix& matrix, const float* m, const float* q, float* p);
void MultiplyTransposedByP(const LowRankMatrix& matrix, const float* m, const float* p, float* q);
void Decompress(const LowRankMatrix& matrix, const float* p, const float* q, float* m);

void Pack(const float* bucket, const std::vector<PlainRange>& ranges, float* packed);
void Unpack(const float* packed, const std::vector<PlainRange>& ranges, float* bucket);
void DivideBy(float divisor, std::vector<float>& values);
// data += error; before = data.
void AddError(float* data, const std::vector<float>& error, std::vector<float>& before);
// error = before - data.
void KeepError(const float* data, const std::vector<float>& before, std::vector<float>& error);

}  // namespace lockstep::ddp
