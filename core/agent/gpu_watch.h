// Samples of this host's GPUs, taken by a process of their own while a run goes on.
//
// A driver in trouble can hold a process for ever that asks it. So nobody asks it who is needed: a
// helper does, writes what it hears into shared memory, and is left behind if it does not even die.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "core/journal/gpu_sample.h"

namespace lockstep::agent {

struct GpuWatchOptions {
  double seconds = 1;              // between samples
  std::size_t capacity = 1 << 15;  // samples; older ones are overwritten
};

class GpuWatch {
 public:
  // Starts the helper, on processors that this process's ranks are not bound to where there are
  // any. nullptr: there is no driver here (neither its device file nor LOCKSTEP_NVML_LIBRARY, which
  // names another libnvidia-ml.so), or no memory or process could be had: a run goes on without.
  static std::unique_ptr<GpuWatch> Start(const GpuWatchOptions& options = {});
  // Ends the helper; waits at most half a second for it.
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // Up to `most` of the newest samples of every GPU; empty while the driver has not answered yet,
  // and where it knows no GPU.
  journal::GpuSamples Newest(std::size_t most) const;
  // Since the newest sample, or since the start; 0 when the helper found no driver and left.
  double AgeSeconds() const;
  pid_t helper() const { return helper_; }

 private:
  struct Shared;
  [[noreturn]] static void Serve(Shared& shared, const GpuWatchOptions& options, pid_t parent);
  GpuWatch(Shared* shared, std::size_t bytes, std::size_t capacity, pid_t helper)
      : shared_(shared), bytes_(bytes), capacity_(capacity), helper_(helper) {}
  Shared* shared_;
  std::size_t bytes_;
  std::size_t capacity_;
  pid_t helper_;
};

}  // namespace lockstep::agent
