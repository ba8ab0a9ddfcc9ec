// DDP's Reducer: gradients into buckets, buckets onto the wire, averages back into gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/buckets.h"
#include "core/ddp/engine_options.h"
#include "core/ddp/gradient_hook.h"
#include "core/ddp/host_values.h"
#include "core/ddp/launcher.h"
#include "core/ddp/module.h"

namespace lockstep::ddp {

// Verbs and state are those of PyTorch's class, one for one.
class Reducer {
 public:
  Reducer(Module& module, const EngineOptions& options, Launcher& launcher, HostValues& values);

  void PrepareForForward() { ++iterations_; }
  // At the end of a forward whose backward synchronizes. `used`: what the graph reaches.
  Status PrepareForBackward(const std::vector<bool>& used);
  // Adopts rank 0's layout once gradients came in an order; complains of a backward that did not
  // finish.
  Status RebuildBuckets();
  // The gradient of a parameter was accumulated.
  Status OnGradient(int param);
  // At the end of a backward pass. `delayed`: the one that static_graph delays everything in.
  Status FinishBackward(bool delayed);
  // What the divisor is taken from, instead of the number of ranks.
  void SetDivisorSource(HostValues::Handle alive) { alive_ = std::move(alive); }

  // A rank that joined: zeros in place of every bucket, its bitmap, parameters in plain order.
  Status ShadowBuckets();
  Status ShadowBitmap();
  void PushAllRebuiltParams();

  const BucketLayout& layout() const { return layout_; }
  bool has_rebuilt() const { return has_rebuilt_; }
  std::int64_t iterations() const { return iterations_; }

 private:
  bool FindsUnused() const { return find_unused_ && !static_graph_; }
  bool StaticFirst() const { return static_graph_ && iterations_ == 1; }
  bool ShouldRebuild() const;
  void SetLayout(BucketLayout layout);
  Status PlaceBuckets();
  Status SyncLayout(BucketLayout& layout);
  Status SetDivisor();
  Status MarkReady(int param);
  Status FillBucket(int param);
  Status LaunchReadyBuckets();
  Status LaunchBitmap();
  Status DelayedAllReduce();
  Status Finalize();
  Status CopyBack(std::size_t bucket);
  Result<bool> GloballyUnused(int param);
  Status UnfinishedReduction() const;

  Module& module_;
  EngineOptions options_;
  Launcher& launcher_;
  HostValues& values_;
  bool find_unused_;
  bool static_graph_;
  std::vector<Gradient> gradients_;
  std::unique_ptr<GradientHook> hook_;
  BucketMemory own_memory_;

  BucketLayout layout_;
  struct Locator {
    std::size_t bucket = 0;
    std::int64_t offset_bytes = 0;  // in the bucket
  };
  std::vector<Locator> locators_;  // by parameter
  std::vector<BucketInFlight> buckets_;
  std::vector<std::size_t> pending_;  // parameters of each bucket that are not ready
  std::size_t next_bucket_ = 0;
  bool has_rebuilt_ = false;
  std::vector<int> rebuilt_params_;

  std::int64_t iterations_ = 0;
  bool expect_hooks_ = false;
  bool require_finalize_ = false;
  bool finalize_queued_ = false;
  bool has_marked_unused_ = false;
  std::vector<int> unused_;
  std::vector<bool> ready_;             // by parameter, this iteration
  std::vector<int> hooks_fired_;        // static_graph: in the first iteration
  std::vector<int> hooks_left_;         // static_graph: in this one
  std::vector<std::int32_t> used_map_;  // by parameter; 1: used here, then the sum over the ranks
  bool used_map_reduced_ = false;
  HostValues::Handle bitmap_;
  HostValues::Handle alive_;
  std::optional<double> divisor_;
};

}  // namespace lockstep::ddp
