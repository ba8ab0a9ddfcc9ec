// Groups are copied into flat memory, broadcast and copied back. At most two are in flight, as in
// PyTorch's broadcast_coalesced, so there are two areas of memory.
#include "core/ddp/coalesced_broadcast.h"

#include <array>
#include <cstddef>

namespace lockstep::ddp {
namespace {

// Copies the tensors of a group into the flat memory, or back.
void CopyGroup(Launcher& launcher, const std::vector<TensorRef>& tensors, const Bucket& group,
               void* flat, bool into_flat) {
  auto* place = static_cast<std::byte*>(flat);
  const EnginePorts& ports = launcher.ports();
  for (const int index : group.params) {
    const TensorRef& tensor = tensors[static_cast<std::size_t>(index)];
    const std::int64_t bytes = tensor.numel * collective::SizeOf(tensor.type);
    ports.kernels.Copy(ports.compute, into_flat ? place : tensor.data,
                       into_flat ? tensor.data : place, bytes);
    place += bytes;
  }
}

}  // namespace

BucketLayout CoalescedGroups(const std::vector<TensorRef>& tensors) {
  std::vector<Gradient> sizes;
  sizes.reserve(tensors.size());
  for (const TensorRef& tensor : tensors) {
    sizes.push_back({.numel = tensor.numel, .type = tensor.type});
  }
  return ComputeBucketAssignmentBySize(sizes, std::array{kBroadcastBucketBytes});
}

Result<void*> CoalescedBroadcast::Area(std::size_t index, std::int64_t bytes) {
  if (areas_.size() <= index) areas_.resize(index + 1);
  std::unique_ptr<device::Buffer>& area = areas_[index];
  if (area == nullptr || area->bytes() < bytes) {
    // What was copied out of the old one may still be on its way.
    if (area != nullptr) LOCKSTEP_RETURN_IF_ERROR(launcher_.Synchronize());
    area.reset();
    LOCKSTEP_ASSIGN_OR_RETURN(area, launcher_.ports().device.Allocate(bytes));
  }
  return area->data();
}

Status CoalescedBroadcast::Run(const std::vector<TensorRef>& tensors, int root, Purpose purpose) {
  constexpr std::size_t kMostInFlight = 2;
  struct InFlight {
    const Bucket* group = nullptr;
    void* flat = nullptr;
    Work work;
  };
  std::array<InFlight, kMostInFlight> in_flight;
  const auto finish = [&](InFlight& one) -> Status {
    if (one.group == nullptr) return OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(launcher_.Wait(one.work));
    CopyGroup(launcher_, tensors, *one.group, one.flat, false);
    one.group = nullptr;
    return OkStatus();
  };
  const BucketLayout groups = CoalescedGroups(tensors);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    InFlight& next = in_flight[i % kMostInFlight];
    LOCKSTEP_RETURN_IF_ERROR(finish(next));
    next.group = &groups[i];
    LOCKSTEP_ASSIGN_OR_RETURN(next.flat, Area(i % kMostInFlight, groups[i].bytes()));
    CopyGroup(launcher_, tensors, groups[i], next.flat, true);
    const Operation operation = {.collective = Collective::kBroadcast,
                                 .type = groups[i].type,
                                 .count = groups[i].elements,
                                 .root = root};
    LOCKSTEP_ASSIGN_OR_RETURN(next.work, launcher_.Launch(operation, {next.flat, next.flat},
                                                          purpose, static_cast<std::int32_t>(i)));
  }
  for (std::size_t i = 0; i < kMostInFlight; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(finish(in_flight[(groups.size() + i) % kMostInFlight]));
  }
  return OkStatus();
}

Status CoalescedBroadcast::ReleaseMemory() {
  LOCKSTEP_RETURN_IF_ERROR(launcher_.Synchronize());
  areas_.clear();
  return OkStatus();
}

}  // namespace lockstep::ddp
