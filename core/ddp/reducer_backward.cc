// What the Reducer does during a backward pass.
#include <cstddef>

#include "core/ddp/reducer.h"

namespace lockstep::ddp {

Status Reducer::OnGradient(int param) {
  if (!expect_hooks_) return OkStatus();  // no_sync
  const auto index = static_cast<std::size_t>(param);
  if (FindsUnused() || StaticFirst()) used_map_[index] = 1;
  if (StaticFirst()) {
    ++hooks_fired_[index];
    return OkStatus();
  }
  if (!has_marked_unused_) {
    has_marked_unused_ = true;
    for (const int unused : unused_) LOCKSTEP_RETURN_IF_ERROR(MarkReady(unused));
  }
  if (static_graph_) {
    if (hooks_left_[index] <= 0) {
      return SystemFailed(
          "Your training graph has changed in this iteration, e.g., one parameter is unused in "
          "first iteration, but then got used in the second iteration. this is not compatible with "
          "static_graph set to True.");
    }
    if (--hooks_left_[index] > 0) return OkStatus();
  }
  if (ShouldRebuild()) rebuilt_params_.push_back(param);
  return MarkReady(param);
}

Status Reducer::SetDivisor() {
  if (divisor_) return OkStatus();
  divisor_ = launcher_.ports().communicator.size();
  if (alive_ == nullptr) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const auto alive, values_.Read<float>(alive_));
  divisor_ = static_cast<double>(static_cast<int>(alive.front()));
  return OkStatus();
}

Status Reducer::FillBucket(int param) {
  const auto index = static_cast<std::size_t>(param);
  const Parameter& parameter = module_.params()[index];
  const EnginePorts& ports = launcher_.ports();
  const Locator& at = locators_[index];
  void* view = static_cast<std::byte*>(buckets_[at.bucket].data) + at.offset_bytes;
  const TensorInfo& info = parameter.info;
  if (!parameter.has_grad) {
    ports.kernels.Zero(ports.compute, view, info.bytes());
  } else if (hook_->wants_divided()) {
    // Before the sum, and as a product: PyTorch's rounding.
    ports.kernels.Scale(ports.compute, info.type, view, parameter.grad, info.numel,
                        1.0 / *divisor_);
  } else {
    ports.kernels.Copy(ports.compute, view, parameter.grad, info.bytes());
  }
  return OkStatus();
}

Status Reducer::MarkReady(int param) {
  const auto index = static_cast<std::size_t>(param);
  if (ready_[index]) {
    return SystemFailed("Expected to mark a variable ready only once. Parameter at index " +
                        std::to_string(param) + " has been marked as ready twice.");
  }
  ready_[index] = true;
  require_finalize_ = true;
  LOCKSTEP_RETURN_IF_ERROR(SetDivisor());
  LOCKSTEP_RETURN_IF_ERROR(FillBucket(param));
  const std::size_t bucket = locators_[index].bucket;
  if (--pending_[bucket] == 0) LOCKSTEP_RETURN_IF_ERROR(LaunchReadyBuckets());
  if (next_bucket_ == layout_.size()) {
    if (FindsUnused()) LOCKSTEP_RETURN_IF_ERROR(LaunchBitmap());
    finalize_queued_ = true;
  }
  return OkStatus();
}

// A bucket waits for its turn, even when it is ready: all ranks must launch in one order.
Status Reducer::LaunchReadyBuckets() {
  while (next_bucket_ < layout_.size() && pending_[next_bucket_] == 0) {
    LOCKSTEP_RETURN_IF_ERROR(hook_->Launch(buckets_[next_bucket_++], Purpose::kBucket));
  }
  return OkStatus();
}

Status Reducer::LaunchBitmap() {
  const Operation operation = {.collective = Collective::kAllReduce,
                               .type = DataType::kI32,
                               .count = static_cast<std::int64_t>(used_map_.size())};
  bitmap_.reset();
  LOCKSTEP_ASSIGN_OR_RETURN(bitmap_, values_.Launch(operation, used_map_, Purpose::kUnusedBitmap));
  return OkStatus();
}

// static_graph's first iteration: everything after the last gradient.
Status Reducer::DelayedAllReduce() {
  LOCKSTEP_RETURN_IF_ERROR(LaunchBitmap());
  if (buckets_.front().data == nullptr) LOCKSTEP_RETURN_IF_ERROR(PlaceBuckets());
  unused_.clear();
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (hooks_fired_[i] == 0) unused_.push_back(static_cast<int>(i));
    require_finalize_ = true;
    LOCKSTEP_RETURN_IF_ERROR(SetDivisor());
    LOCKSTEP_RETURN_IF_ERROR(FillBucket(static_cast<int>(i)));
  }
  for (BucketInFlight& bucket : buckets_) {
    LOCKSTEP_RETURN_IF_ERROR(hook_->Launch(bucket, Purpose::kBucket));
  }
  return Finalize();
}

Status Reducer::FinishBackward(bool delayed) {
  if (delayed) return DelayedAllReduce();
  if (!finalize_queued_) return OkStatus();  // the next forward complains
  finalize_queued_ = false;
  if (static_graph_ && ShouldRebuild()) {
    rebuilt_params_.insert(rebuilt_params_.end(), unused_.begin(), unused_.end());
  }
  return Finalize();
}

Status Reducer::Finalize() {
  if (!expect_hooks_) {
    return SystemFailed("expect_autograd_hooks_ INTERNAL ASSERT FAILED in finalize_backward");
  }
  expect_hooks_ = false;
  require_finalize_ = false;
  for (std::size_t b = 0; b < layout_.size(); ++b) {
    LOCKSTEP_RETURN_IF_ERROR(hook_->Finish(buckets_[b]));
    divisor_.reset();
    LOCKSTEP_RETURN_IF_ERROR(CopyBack(b));
  }
  const bool has_bitmap = FindsUnused() || StaticFirst();
  if (has_bitmap && !used_map_reduced_) LOCKSTEP_RETURN_IF_ERROR(values_.Wait(bitmap_));
  if (FindsUnused()) {
    used_map_.assign(used_map_.size(), 0);
    used_map_reduced_ = false;
  }
  return OkStatus();
}

Result<bool> Reducer::GloballyUnused(int param) {
  const auto index = static_cast<std::size_t>(param);
  if (!static_graph_ && !find_unused_) return false;
  if (used_map_[index] != 0) return false;
  if (!used_map_reduced_) {  // waits only when a parameter is unused here
    LOCKSTEP_ASSIGN_OR_RETURN(used_map_, values_.Read<std::int32_t>(bitmap_));
    used_map_reduced_ = true;
  }
  return used_map_[index] == 0;
}

Status Reducer::CopyBack(std::size_t bucket) {
  const EnginePorts& ports = launcher_.ports();
  for (const int param : layout_[bucket].params) {
    const auto index = static_cast<std::size_t>(param);
    LOCKSTEP_ASSIGN_OR_RETURN(const bool globally_unused, GloballyUnused(param));
    if (globally_unused) continue;
    Parameter& parameter = module_.params()[index];
    const void* view =
        static_cast<const std::byte*>(buckets_[bucket].data) + locators_[index].offset_bytes;
    ports.kernels.Copy(ports.compute, parameter.grad, view, parameter.info.bytes());
    parameter.has_grad = true;
  }
  return OkStatus();
}

Status Reducer::ShadowBuckets() {
  LOCKSTEP_RETURN_IF_ERROR(PlaceBuckets());
  const EnginePorts& ports = launcher_.ports();
  for (BucketInFlight& bucket : buckets_) {
    ports.kernels.Zero(ports.compute, bucket.data, bucket.bucket->bytes());
    LOCKSTEP_RETURN_IF_ERROR(hook_->Launch(bucket, Purpose::kJoinShadowBucket));
  }
  for (BucketInFlight& bucket : buckets_) LOCKSTEP_RETURN_IF_ERROR(hook_->Finish(bucket));
  return OkStatus();
}

// Sends what the last iteration's sum left, as PyTorch does; nobody waits for it.
Status Reducer::ShadowBitmap() {
  if (bitmap_ == nullptr) return LaunchBitmap();
  const Operation operation = {.collective = Collective::kAllReduce,
                               .type = DataType::kI32,
                               .count = static_cast<std::int64_t>(used_map_.size())};
  return values_.Relaunch(operation, bitmap_, Purpose::kUnusedBitmap);
}

void Reducer::PushAllRebuiltParams() {
  if (!ShouldRebuild() || !rebuilt_params_.empty()) return;
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    rebuilt_params_.push_back(static_cast<int>(i));
  }
}

}  // namespace lockstep::ddp
