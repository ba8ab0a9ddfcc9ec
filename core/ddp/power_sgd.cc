// powerSGD_hook: a matrix M travels as two thin ones, P = M Q and Q = M^T P, so that M ~ P Q^T. The
// method is that of Vogels, Karimireddy and Jaggi 2019, "PowerSGD". Source: pytorch
// torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py.
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>

#include "core/base/random.h"
#include "core/ddp/gradient_hook.h"
#include "core/ddp/low_rank.h"
#include "core/device/native_stream.h"

namespace lockstep::ddp {
namespace {

// What is kept of a bucket from iteration to iteration.
struct BucketState {
  std::vector<int> params;  // the bucket it belongs to
  std::vector<LowRankMatrix> matrices;
  std::vector<PlainRange> plain;  // what is not compressed
  std::int64_t plain_count = 0;
  std::vector<float> uncompressed;
  std::vector<float> p;
  std::vector<float> q;
  std::vector<float> error;   // what compression lost so far
  std::vector<float> before;  // the gradients before compression
  bool has_q = false;
};

class PowerSgdHook final : public GradientHook {
 public:
  PowerSgdHook(const PowerSgdOptions& options, const std::vector<Parameter>& params,
               Launcher& launcher)
      : options_(options),
        params_(params),
        launcher_(launcher),
        plain_(MakeAllReduceHook(CommHook::kAllReduce, launcher)),
        random_(options.seed) {}

  Status Launch(BucketInFlight& bucket, Purpose purpose) override {
    if (iteration_ < options_.start_iteration) {
      LOCKSTEP_RETURN_IF_ERROR(plain_->Launch(bucket, purpose));
    } else {
      if (bucket.bucket->type != DataType::kF32) {
        return Unsupported("powersgd: gradients of another type than f32; use hook none or fp16");
      }
      LOCKSTEP_RETURN_IF_ERROR(LaunchCompressed(bucket, purpose));
    }
    if (bucket.last) ++iteration_;
    return OkStatus();
  }

  Status Finish(BucketInFlight& bucket) override { return launcher_.Wait(bucket.work); }

 private:
  // The arithmetic runs on the communication stream between the collectives, as PyTorch's callbacks
  // do beside the backward pass. The order is that of NCCL: bucket by bucket.
  Status LaunchCompressed(BucketInFlight& bucket, Purpose purpose) {
    BucketState& state = StateOf(bucket);
    device::Stream& stream = launcher_.ports().communication;
    const float ranks = static_cast<float>(launcher_.ports().communicator.size());
    auto* data = static_cast<float*>(bucket.data);
    const std::uint64_t seed = random_.Next();
    const bool draw_q = !std::exchange(state.has_q, options_.warm_start);
    const bool feedback = options_.error_feedback;

    launcher_.OrderBehindCompute();
    stream.Do([&state, data, seed, draw_q, feedback] {
      if (feedback) AddError(data, state.error, state.before);
      Pack(data, state.plain, state.uncompressed.data());
      Random random(seed);
      for (const LowRankMatrix& matrix : state.matrices) {
        float* const q = state.q.data() + matrix.q;
        if (draw_q) FillNormal(q, matrix.columns * matrix.rank, random);
        Orthogonalize(q, matrix.columns, matrix.rank);
        MultiplyByQ(matrix, data + matrix.offset, q, state.p.data() + matrix.p);
      }
    });
    LOCKSTEP_RETURN_IF_ERROR(Sum(state.uncompressed, state.plain_count, purpose, bucket.index));
    stream.Do([&state, data, ranks] {
      DivideBy(ranks, state.uncompressed);
      Unpack(state.uncompressed.data(), state.plain, data);
    });
    LOCKSTEP_RETURN_IF_ERROR(Sum(state.p, static_cast<std::int64_t>(state.p.size()) - 1,
                                 Purpose::kPowerSgdFactorP, bucket.index));
    stream.Do([&state, data] {
      for (const LowRankMatrix& matrix : state.matrices) {
        float* const p = state.p.data() + matrix.p;
        Orthogonalize(p, matrix.rows, matrix.rank);
        MultiplyTransposedByP(matrix, data + matrix.offset, p, state.q.data() + matrix.q);
      }
    });
    LOCKSTEP_RETURN_IF_ERROR(Sum(state.q, static_cast<std::int64_t>(state.q.size()) - 1,
                                 Purpose::kPowerSgdFactorQ, bucket.index));
    stream.Do([&state, data, ranks, feedback] {
      DivideBy(ranks, state.q);
      for (const LowRankMatrix& matrix : state.matrices) {
        Decompress(matrix, state.p.data() + matrix.p, state.q.data() + matrix.q,
                   data + matrix.offset);
      }
      if (feedback) KeepError(data, state.before, state.error);
    });
    bucket.work = launcher_.MarkCommunication();
    return OkStatus();
  }

  BucketState& StateOf(const BucketInFlight& bucket) {
    BucketState& state = states_[bucket.index];
    if (state.params == bucket.bucket->params) return state;
    state = BucketState();
    state.params = bucket.bucket->params;
    std::int64_t offset = 0;
    std::int64_t p_count = 0;
    std::int64_t q_count = 0;
    for (const int param : state.params) {
      const TensorInfo& info = params_[static_cast<std::size_t>(param)].info;
      LowRankMatrix matrix = MatrixOf(info, options_.rank);
      matrix.offset = offset;
      matrix.p = p_count;
      matrix.q = q_count;
      offset += info.numel;
      if (IsWorthCompressing(matrix, options_.min_compression_rate)) {
        p_count += matrix.rows * matrix.rank;
        q_count += matrix.columns * matrix.rank;
        state.matrices.push_back(matrix);
      } else {
        state.plain.push_back({matrix.offset, state.plain_count, info.numel});
        state.plain_count += info.numel;
      }
    }
    // Never empty: a communicator wants a buffer for 0 elements too.
    state.uncompressed.resize(static_cast<std::size_t>(state.plain_count) + 1);
    state.p.resize(static_cast<std::size_t>(p_count) + 1);
    state.q.resize(static_cast<std::size_t>(q_count) + 1);
    if (options_.error_feedback) {
      state.error.assign(static_cast<std::size_t>(offset), 0);
      state.before.resize(static_cast<std::size_t>(offset));
    }
    return state;
  }

  Status Sum(std::vector<float>& values, std::int64_t count, Purpose purpose, int index) {
    const Operation operation = {.collective = Collective::kAllReduce, .count = count};
    const EnginePorts& ports = launcher_.ports();
    if (dynamic_cast<device::NativeDevice*>(&ports.device) == nullptr) {
      return launcher_.Launch(operation, {values.data(), values.data()}, purpose, index).status();
    }
    // A library of the device's reaches only its memory, which the arithmetic here reaches, too.
    const std::size_t bytes = values.size() * sizeof(float);
    std::unique_ptr<device::Buffer>& twin = twins_[values.data()];
    if (twin == nullptr) {
      LOCKSTEP_ASSIGN_OR_RETURN(twin, ports.device.Allocate(static_cast<std::int64_t>(bytes)));
    }
    void* const there = twin->data();
    float* const here = values.data();
    ports.communication.Do([=] { std::memcpy(there, here, bytes); });
    LOCKSTEP_RETURN_IF_ERROR(launcher_.Launch(operation, {there, there}, purpose, index).status());
    ports.communication.Do([=] { std::memcpy(here, there, bytes); });
    return OkStatus();
  }

  PowerSgdOptions options_;
  const std::vector<Parameter>& params_;
  Launcher& launcher_;
  std::unique_ptr<GradientHook> plain_;  // before options_.start_iteration
  Random random_;
  std::int64_t iteration_ = 0;
  std::map<int, BucketState> states_;
  std::map<const float*, std::unique_ptr<device::Buffer>>
      twins_;  // of a state's values, on the device
};

}  // namespace

std::unique_ptr<GradientHook> MakePowerSgdHook(const PowerSgdOptions& options,
                                               const std::vector<Parameter>& params,
                                               Launcher& launcher) {
  return std::make_unique<PowerSgdHook>(options, params, launcher);
}

}  // namespace lockstep::ddp
