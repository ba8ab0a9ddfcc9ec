// torch.distributed._broadcast_coalesced: tensors of one type travel together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/buckets.h"
#include "core/ddp/launcher.h"
#include "core/ddp/module.h"

namespace lockstep::ddp {

inline constexpr std::int64_t kBroadcastBucketBytes = 250 * 1024 * 1024;

struct TensorRef {
  DataType type = DataType::kF32;
  std::int64_t numel = 0;
  void* data = nullptr;
};

// The groups of `tensors` that travel together, by the rules of buckets (pytorch comm.cpp).
BucketLayout CoalescedGroups(const std::vector<TensorRef>& tensors);

// Keeps the flat memory between calls (two areas, as large as the largest groups).
class CoalescedBroadcast {
 public:
  explicit CoalescedBroadcast(Launcher& launcher) : launcher_(launcher) {}
  // Copies each group into flat memory, broadcasts it from `root`, at most two at a time, and
  // copies it back. When it returns, later work of the compute stream finds the root's values.
  Status Run(const std::vector<TensorRef>& tensors, int root, Purpose purpose);
  // Waits for the compute stream, then gives the memory back.
  Status ReleaseMemory();

 private:
  Result<void*> Area(std::size_t index, std::int64_t bytes);

  Launcher& launcher_;
  std::vector<std::unique_ptr<device::Buffer>> areas_;
};

}  // namespace lockstep::ddp
