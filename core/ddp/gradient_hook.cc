// Hooks that need no state: the plain sum, all_reduce, fp16 and bf16 compression. PowerSGD is in
// power_sgd.cc. They divide where PyTorch's do, because the order of rounding shows in the bits.
#include "core/ddp/gradient_hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace lockstep::ddp {
namespace {

constexpr std::string_view kHookNames[] = {"none", "all_reduce", "fp16", "bf16", "powersgd"};

// No hook; allreduce_hook, fp16_compress_hook and bf16_compress_hook: converts, then divides in the
// narrow type, sums in it, converts back.
class AllReduceHook final : public GradientHook {
 public:
  AllReduceHook(Launcher& launcher, CommHook hook) : launcher_(launcher), hook_(hook) {}
  bool wants_divided() const override { return hook_ == CommHook::kNone; }

  Status Launch(BucketInFlight& bucket, Purpose purpose) override {
    const EnginePorts& ports = launcher_.ports();
    const Bucket& what = *bucket.bucket;
    const DataType type = TypeFor(what.type);
    void* data = type == what.type ? bucket.data : bucket.compressed;
    if (type != what.type) {
      ports.kernels.Convert(ports.compute, type, data, what.type, bucket.data, what.elements);
    }
    if (!wants_divided()) {
      ports.kernels.Divide(ports.compute, type, data, data, what.elements,
                           ports.communicator.size());
    }
    const Operation operation = {
        .collective = Collective::kAllReduce, .type = type, .count = what.elements};
    LOCKSTEP_ASSIGN_OR_RETURN(bucket.work,
                              launcher_.Launch(operation, {data, data}, purpose, bucket.index));
    return OkStatus();
  }

  Status Finish(BucketInFlight& bucket) override {
    LOCKSTEP_RETURN_IF_ERROR(launcher_.Wait(bucket.work));
    const EnginePorts& ports = launcher_.ports();
    const Bucket& what = *bucket.bucket;
    const DataType type = TypeFor(what.type);
    if (type != what.type) {
      ports.kernels.Convert(ports.compute, what.type, bucket.data, type, bucket.compressed,
                            what.elements);
    }
    return OkStatus();
  }

 private:
  DataType TypeFor(DataType type) const {
    if (hook_ == CommHook::kFp16) return DataType::kF16;
    return hook_ == CommHook::kBf16 ? DataType::kBf16 : type;
  }

  Launcher& launcher_;
  CommHook hook_;
};

}  // namespace

Result<CommHook> ParseCommHook(std::string_view option, std::string_view text) {
  const auto found = std::ranges::find(kHookNames, text);
  if (found != std::end(kHookNames)) return static_cast<CommHook>(found - kHookNames);
  return InvalidInput("{}: '{}' is not a communication hook; choose one of {}", option, text,
                      fmt::join(kHookNames, ", "));
}

std::string_view NameOf(CommHook hook) { return kHookNames[static_cast<std::size_t>(hook)]; }

std::unique_ptr<GradientHook> MakeAllReduceHook(CommHook hook, Launcher& launcher) {
  return std::make_unique<AllReduceHook>(launcher, hook);
}

std::unique_ptr<GradientHook> MakeGradientHook(const EngineOptions& options,
                                               const std::vector<Parameter>& params,
                                               Launcher& launcher) {
  if (options.hook != CommHook::kPowerSgd) return MakeAllReduceHook(options.hook, launcher);
  return MakePowerSgdHook(options.power_sgd, params, launcher);
}

}  // namespace lockstep::ddp
