// Where a rank's device is and what it does, in words: from the marks that its stream wrote and
// from the samples of its driver. Pure functions.
#pragma once

#include <string>

#include "core/base/clock.h"
#include "core/journal/device_marks.h"
#include "core/journal/gpu_sample.h"
#include "core/journal/journal.h"

namespace lockstep::verdict {

// "its GPU is inside all_reduce 50 (…), which it began and has not ended"; of the oldest collective
// of any communicator that is not through on the device. Empty without marks.
std::string DescribeDevicePosition(const journal::Journal& journal,
                                   const journal::DeviceMarks& marks);

// "GPU 0 at 100 % utilization for 8 s without progress: memory 0 % busy, 118 of 700 W: a kernel
// waits there and does no work". A kernel that waits for a peer spins, so that utilization alone
// says nothing; work moves memory or draws power. `since`: the rank's newest journal event.
// `age_seconds`: of the newest sample, on its host. Empty where there is nothing to say.
std::string DescribeGpuActivity(const journal::GpuSamples& host, const std::string& bus,
                                Ticks since, double age_seconds);

}  // namespace lockstep::verdict
