// Forward and backward of two layers, written out so that every gradient can be compared with
// PyTorch's. Sums are in double and become float once, where PyTorch stores a tensor.
#include "core/ddp/small_layers.h"

#include <cmath>
#include <cstddef>

namespace lockstep::ddp {
namespace {

constexpr double kEps = 1e-5;
constexpr double kMomentum = 0.1;

}  // namespace

Rows LinearLayer::Forward(const Rows& x) {
  x_ = x;
  Rows y(x.count, out_);
  for (int row = 0; row < x.count; ++row) {
    for (int o = 0; o < out_; ++o) {
      double sum = bias.data[static_cast<std::size_t>(o)];
      for (int i = 0; i < in_; ++i) {
        sum += x.At(row, i) * weight.data[static_cast<std::size_t>(o * in_ + i)];
      }
      y.At(row, o) = sum;
    }
  }
  return y;
}

Rows LinearLayer::Backward(const Rows& dy, std::vector<double>& dbias,
                           std::vector<double>& dweight) const {
  dbias.assign(bias.data.size(), 0);
  dweight.assign(weight.data.size(), 0);
  Rows dx(dy.count, in_);
  for (int row = 0; row < dy.count; ++row) {
    for (int o = 0; o < out_; ++o) {
      const double d = dy.At(row, o);
      dbias[static_cast<std::size_t>(o)] += d;
      for (int i = 0; i < in_; ++i) {
        const auto at = static_cast<std::size_t>(o * in_ + i);
        dweight[at] += d * x_.At(row, i);
        dx.At(row, i) += d * weight.data[at];
      }
    }
  }
  return dx;
}

BatchNormLayer::BatchNormLayer(int width)
    : weight(std::vector<float>(static_cast<std::size_t>(width), 1.0f)),
      bias(std::vector<float>(static_cast<std::size_t>(width), 0.0f)),
      running_mean(static_cast<std::size_t>(width), 0.0f),
      running_var(static_cast<std::size_t>(width), 1.0f),
      width_(width),
      mean_(static_cast<std::size_t>(width)),
      inverse_std_(static_cast<std::size_t>(width)) {}

std::vector<float> BatchNormLayer::Statistics(const Rows& x) const {
  const auto width = static_cast<std::size_t>(width_);
  std::vector<float> statistics(2 * width + 1);
  for (int c = 0; c < width_; ++c) {
    double sum = 0;
    double squares = 0;
    for (int row = 0; row < x.count; ++row) sum += x.At(row, c);
    const double mean = sum / x.count;
    for (int row = 0; row < x.count; ++row) {
      squares += (x.At(row, c) - mean) * (x.At(row, c) - mean);
    }
    statistics[static_cast<std::size_t>(c)] = static_cast<float>(mean);
    statistics[width + static_cast<std::size_t>(c)] =
        static_cast<float>(1 / std::sqrt(squares / x.count + kEps));
  }
  statistics.back() = static_cast<float>(x.count);
  return statistics;
}

Rows BatchNormLayer::Forward(const Rows& x, const std::vector<float>& gathered, bool training) {
  x_ = x;
  training_ = training;
  const auto width = static_cast<std::size_t>(width_);
  const std::size_t stride = 2 * width + 1;
  total_ = 0;
  for (std::size_t at = 0; at < gathered.size(); at += stride) total_ += gathered[at + stride - 1];
  for (std::size_t c = 0; c < width; ++c) {
    double sum = 0;
    double squares = 0;  // around zero, of all ranks
    for (std::size_t at = 0; at < gathered.size(); at += stride) {
      const double count = gathered[at + stride - 1];
      const double mean = gathered[at + c];
      const double inverse = gathered[at + width + c];
      sum += count * mean;
      squares += count * (1 / (inverse * inverse) - kEps + mean * mean);
    }
    const double mean = sum / total_;
    const double variance = squares / total_ - mean * mean;
    mean_[c] = training ? mean : running_mean[c];
    inverse_std_[c] = 1 / std::sqrt((training ? variance : running_var[c]) + kEps);
    if (!training) continue;
    const double unbiased = variance * total_ / (total_ - 1);
    running_mean[c] += static_cast<float>(kMomentum * (mean - running_mean[c]));
    running_var[c] += static_cast<float>(kMomentum * (unbiased - running_var[c]));
  }
  if (training) ++batches_tracked;
  Rows y(x.count, width_);
  for (int row = 0; row < x.count; ++row) {
    for (int i = 0; i < width_; ++i) {
      const auto c = static_cast<std::size_t>(i);
      y.At(row, i) = (x.At(row, i) - mean_[c]) * inverse_std_[c] * weight.data[c] + bias.data[c];
    }
  }
  return y;
}

std::vector<float> BatchNormLayer::BackwardSums(const Rows& dy, std::vector<double>& dweight,
                                                std::vector<double>& dbias) const {
  const auto width = static_cast<std::size_t>(width_);
  dweight.assign(width, 0);
  dbias.assign(width, 0);
  std::vector<float> sums(2 * width);
  for (int i = 0; i < width_; ++i) {
    const auto c = static_cast<std::size_t>(i);
    double centered = 0;
    for (int row = 0; row < dy.count; ++row) {
      dbias[c] += dy.At(row, i);
      centered += dy.At(row, i) * (x_.At(row, i) - mean_[c]);
    }
    dweight[c] = centered * inverse_std_[c];
    sums[c] = static_cast<float>(dbias[c]);
    sums[width + c] = static_cast<float>(centered);
  }
  return sums;
}

Rows BatchNormLayer::Backward(const Rows& dy, const std::vector<float>& sums) const {
  const auto width = static_cast<std::size_t>(width_);
  Rows dx(dy.count, width_);
  for (int i = 0; i < width_; ++i) {
    const auto c = static_cast<std::size_t>(i);
    const double scale = inverse_std_[c] * weight.data[c];
    const double mean_dy = training_ ? sums[c] / total_ : 0;
    const double mean_centered =
        training_ ? sums[width + c] / total_ * inverse_std_[c] * inverse_std_[c] : 0;
    for (int row = 0; row < dy.count; ++row) {
      dx.At(row, i) =
          (dy.At(row, i) - mean_dy - (x_.At(row, i) - mean_[c]) * mean_centered) * scale;
    }
  }
  return dx;
}

}  // namespace lockstep::ddp
