// The module port: a model with parameters, buffers, a forward and a backward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/collective/data_type.h"
#include "core/device/device.h"

namespace lockstep::ddp {

using collective::DataType;

// So that what follows in the same memory begins with a cache line.
constexpr std::int64_t CacheAligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

// A tensor, contiguous, by its description.
struct TensorInfo {
  std::string name;
  std::vector<std::int64_t> shape;
  DataType type = DataType::kF32;
  std::int64_t numel = 0;

  std::int64_t bytes() const { return numel * collective::SizeOf(type); }
};

struct Parameter {
  TensorInfo info;
  void* data = nullptr;   // numel elements
  void* grad = nullptr;   // numel elements, valid while has_grad
  bool has_grad = false;  // false: .grad is None
  bool sparse = false;    // as of nn.Embedding(sparse=True)
};

struct ModuleBuffer {
  TensorInfo info;
  void* data = nullptr;
};

// One call of forward.
struct Pass {
  std::int64_t input = 0;  // which input of this rank, from 0 in every epoch
  bool training = true;    // train() or eval()
  bool grad = true;        // false: under no_grad
};

// The collectives that a module calls itself: SyncBatchNorm's. Host memory or the device's.
class ModuleCollectives {
 public:
  virtual ~ModuleCollectives() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Every rank's `count` f32 from `send` to `recv` (size() x count); ready for work enqueued on the
  // compute stream afterwards.
  virtual Status AllGatherStatistics(int layer, const float* send, float* recv,
                                     std::int64_t count) = 0;
  // The sum over the ranks, in place.
  virtual Status SumStatistics(int layer, float* values, std::int64_t count) = 0;
};

// What a module works with. Work goes to `compute`.
struct ModuleContext {
  device::Stream& compute;
  ModuleCollectives* collectives = nullptr;  // null: batch norm stays local
};

class Module {
 public:
  // Called when the work that accumulates a parameter's gradient is enqueued. An error ends the
  // backward pass.
  using Ready = std::function<Status(int param)>;

  virtual ~Module() = default;
  virtual std::vector<Parameter>& params() = 0;
  virtual std::vector<ModuleBuffer>& buffers() = 0;
  virtual Status Forward(const Pass& pass, ModuleContext context) = 0;
  // Which parameters the graph of the last forward reaches.
  virtual const std::vector<bool>& used() const = 0;
  // Of the sum of the last forward's outputs: accumulates into the gradients of the used parameters
  // (sets has_grad) and calls ready in autograd's order.
  virtual Status Backward(const Ready& ready, ModuleContext context) = 0;
};

}  // namespace lockstep::ddp
