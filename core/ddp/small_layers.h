// The layers of the small models: f32 values, sums in double. Internal to small_models.cc.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::ddp {

// Rows of a batch; row-major.
struct Rows {
  int count = 0;
  int width = 0;
  std::vector<double> values;

  Rows() = default;
  Rows(int rows, int columns)
      : count(rows), width(columns), values(static_cast<std::size_t>(rows * columns)) {}
  double& At(int row, int column) { return values[static_cast<std::size_t>(row * width + column)]; }
  double At(int row, int column) const {
    return values[static_cast<std::size_t>(row * width + column)];
  }
};

// A parameter's memory: values and gradient.
struct SmallTensor {
  std::vector<float> data;
  std::vector<float> grad;
  explicit SmallTensor(std::vector<float> values) : data(std::move(values)), grad(data.size()) {}
};

// nn.Linear: y = x W^T + b; W has [out, in] elements.
class LinearLayer {
 public:
  LinearLayer(int in, int out, std::vector<float> weights, std::vector<float> biases)
      : weight(std::move(weights)), bias(std::move(biases)), in_(in), out_(out) {}

  Rows Forward(const Rows& x);
  // Gradients of the last forward: of bias and weight (not yet accumulated) and of x.
  Rows Backward(const Rows& dy, std::vector<double>& dbias, std::vector<double>& dweight) const;

  SmallTensor weight;
  SmallTensor bias;

 private:
  int in_;
  int out_;
  Rows x_;
};

// nn.BatchNorm1d, or nn.SyncBatchNorm where collectives are given: eps 1e-5, momentum 0.1.
class BatchNormLayer {
 public:
  explicit BatchNormLayer(int width);

  // The statistics of this rank's batch: mean, 1 / sqrt(var + eps) of every column, and the count.
  std::vector<float> Statistics(const Rows& x) const;
  // `gathered`: the statistics of all ranks, one after the other.
  Rows Forward(const Rows& x, const std::vector<float>& gathered, bool training);
  // Sums over the rows of dy and of dy * (x - mean).
  std::vector<float> BackwardSums(const Rows& dy, std::vector<double>& dweight,
                                  std::vector<double>& dbias) const;
  // `sums`: those of all ranks together.
  Rows Backward(const Rows& dy, const std::vector<float>& sums) const;

  int width() const { return width_; }

  SmallTensor weight;
  SmallTensor bias;
  std::vector<float> running_mean;
  std::vector<float> running_var;
  std::int64_t batches_tracked = 0;

 private:
  int width_;
  bool training_ = true;
  double total_ = 0;  // rows on all ranks
  std::vector<double> mean_;
  std::vector<double> inverse_std_;
  Rows x_;
};

}  // namespace lockstep::ddp
