// What is done with a bucket of gradients: DDP's communication hooks.
#pragma once

#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/buckets.h"
#include "core/ddp/engine_options.h"
#include "core/ddp/launcher.h"
#include "core/ddp/module.h"

namespace lockstep::ddp {

// A bucket that is on its way.
struct BucketInFlight {
  const Bucket* bucket = nullptr;
  int index = 0;
  bool last = false;
  void* data = nullptr;        // bucket->elements; the result comes here
  void* compressed = nullptr;  // as many elements of 16 bits
  Work work;
};

class GradientHook {
 public:
  virtual ~GradientHook() = default;
  // Whether the gradients are divided before they come here.
  virtual bool wants_divided() const { return false; }
  // Launches the collectives.
  virtual Status Launch(BucketInFlight& bucket, Purpose purpose) = 0;
  // Later work of the compute stream finds the result in the bucket.
  virtual Status Finish(BucketInFlight& bucket) = 0;
};

std::unique_ptr<GradientHook> MakeGradientHook(const EngineOptions& options,
                                               const std::vector<Parameter>& params,
                                               Launcher& launcher);
// Of all that is not kPowerSgd.
std::unique_ptr<GradientHook> MakeAllReduceHook(CommHook hook, Launcher& launcher);
std::unique_ptr<GradientHook> MakePowerSgdHook(const PowerSgdOptions& options,
                                               const std::vector<Parameter>& params,
                                               Launcher& launcher);

}  // namespace lockstep::ddp
