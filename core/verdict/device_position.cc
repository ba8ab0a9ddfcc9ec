// Words for what a device did last. The marks of its stream are read against the rank's journal,
// the samples of its driver against the time of its newest event.
#include "core/verdict/device_position.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/journal/purpose.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict {
namespace {

constexpr std::int64_t kBusyPercent = 90;
constexpr std::int64_t kIdlePercent = 10;
// Of the time and of the power limit: what a kernel takes that only looks at a flag. A stencil, a
// matrix product or a copy of any size lies far above in one of the two.
constexpr std::int64_t kMemoryAtRestPercent = 2;
constexpr std::int64_t kPowerAtRestPercent = 50;
// A driver that was asked every second and says nothing for so long does not answer.
constexpr double kSilentSeconds = 5;

struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

std::optional<Range> RangeOf(const std::vector<journal::GpuSample>& samples,
                             std::int64_t journal::GpuSample::*member) {
  std::optional<Range> range;
  for (const journal::GpuSample& sample : samples) {
    const std::int64_t value = sample.*member;
    if (value < 0) continue;
    if (!range) range = Range{value, value};
    range->low = std::min(range->low, value);
    range->high = std::max(range->high, value);
  }
  return range;
}

// Those of one GPU since the rank was last heard of; if there are none, its newest one. Not
// `settled`: they are of the time before, too, and say nothing of what goes on without progress.
struct Since {
  std::vector<journal::GpuSample> samples;
  bool settled = false;
  std::int64_t xid_before = 0;
};

Since SamplesSince(const journal::GpuSamples& host, std::int64_t gpu, Ticks since) {
  std::vector<journal::GpuSample> kept;
  std::int64_t xid_before = 0;
  for (const journal::GpuSample& sample : host.samples) {
    if (sample.gpu != gpu) continue;
    if (!kept.empty() && kept.back().ticks <= since) kept.clear();
    kept.push_back(sample);
    if (sample.ticks <= since) xid_before = sample.xid;
  }
  // The driver's figure is of the time before the sample, which the first one shares with progress.
  const bool settled = kept.size() > 1;
  if (settled) kept.erase(kept.begin());
  return {std::move(kept), settled, xid_before};
}

std::string DescribeLoad(const std::vector<journal::GpuSample>& samples) {
  const auto memory = RangeOf(samples, &journal::GpuSample::memory_utilization_percent);
  const auto power = RangeOf(samples, &journal::GpuSample::power_mw);
  const auto limit = RangeOf(samples, &journal::GpuSample::power_limit_mw);
  std::string text;
  if (memory) text += fmt::format("memory {} % busy", memory->high);
  if (power) {
    text += fmt::format("{}{} W", text.empty() ? "" : ", ", power->high / 1000);
    if (limit) text += fmt::format(" of {} W", limit->high / 1000);
  }
  const bool known = memory.has_value();
  const bool rests = known && memory->high <= kMemoryAtRestPercent &&
                     (!power || !limit || power->high * 100 < limit->high * kPowerAtRestPercent);
  if (!known) return text.empty() ? "" : ": " + text;
  return fmt::format(": {}: {}", text,
                     rests ? "a kernel waits there and does no work" : "a kernel works there");
}

std::string DescribeUtilization(const std::vector<journal::GpuSample>& samples, bool settled) {
  const auto busy = RangeOf(samples, &journal::GpuSample::utilization_percent);
  if (!busy) return "";
  const double seconds =
      static_cast<double>(samples.back().unix_ns - samples.front().unix_ns) * 1e-9;
  if (!settled) return fmt::format(" at {} % utilization", busy->high);
  if (busy->high <= kIdlePercent) {
    return fmt::format(" at {} % utilization: nothing runs on it", busy->high);
  }
  if (busy->low < kBusyPercent) {
    return fmt::format(" at {} to {} % utilization", busy->low, busy->high);
  }
  const std::string span =
      seconds >= 1 ? fmt::format(" for {:.0f} s without progress", seconds) : std::string();
  return fmt::format(" at {} % utilization{}{}", busy->low, span, DescribeLoad(samples));
}

// An Xid may be of another process, or of a fault that is over.
std::string DescribeTrouble(const journal::GpuSample& newest, std::int64_t xid_before) {
  std::string text;
  if (newest.xid > 0) {
    text += newest.xid == xid_before
                ? fmt::format("; the driver reported Xid {} before this silence", newest.xid)
                : fmt::format("; the driver reports Xid {}", newest.xid);
  }
  const std::string throttling = journal::DescribeThrottling(newest.throttle_reasons);
  if (throttling != "none" && throttling != "unknown") text += "; throttled: " + throttling;
  if (newest.uncorrected_ecc_errors > 0) {
    text += fmt::format("; {} uncorrected ECC errors", newest.uncorrected_ecc_errors);
  }
  return text;
}

// The newest event of the operation that `number` counts, if the journal still has it.
const JournalEvent* FindOperation(const journal::Journal& journal, std::uint16_t communicator,
                                  std::uint64_t number) {
  for (auto event = journal.events.rbegin(); event != journal.events.rend(); ++event) {
    if (IsCollective(*event) && event->communicator == communicator &&
        event->sequence + 1 == number) {
      return &*event;
    }
  }
  return nullptr;
}

// The same, but for what was captured meanwhile: the device never runs that.
const JournalEvent* FindNext(const journal::Journal& journal, std::uint16_t communicator,
                             std::uint64_t number) {
  for (;; ++number) {
    const JournalEvent* const event = FindOperation(journal, communicator, number);
    if (event == nullptr ||
        journal::UnpackAnnotation(event->value).purpose != journal::Purpose::kCapture) {
      return event;
    }
  }
}

std::string NameOfOperation(const journal::Journal& journal, std::uint16_t communicator,
                            std::uint64_t number) {
  const JournalEvent* const event = FindOperation(journal, communicator, number);
  if (event != nullptr) return DescribeInvocation(*event);
  return fmt::format("sequence {} of communicator {}", number - 1, communicator);
}

}  // namespace

std::string DescribeDevicePosition(const journal::Journal& journal,
                                   const journal::DeviceMarks& marks) {
  std::string text;
  for (const journal::DeviceMark& mark : marks.marks) {
    if (mark.started <= mark.ended) continue;
    text += fmt::format("{}its GPU is inside {}, which it began and has not ended",
                        text.empty() ? "" : "; ",
                        NameOfOperation(journal, mark.communicator, mark.started));
  }
  if (!text.empty()) return text;
  // Nothing is under way: what stands in the queue was not begun.
  for (const journal::DeviceMark& mark : marks.marks) {
    const JournalEvent* const next = FindNext(journal, mark.communicator, mark.ended + 1);
    if (next == nullptr || next->kind == journal::EventKind::kError) continue;
    return fmt::format(
        "its GPU has ended all that it began and has not begun {}: something before it on its "
        "stream is not done, or it was not launched",
        DescribeInvocation(*next));
  }
  if (marks.method == journal::MarkMethod::kOff) {
    return "device marks are off: --device-marks=on shows where its GPU is";
  }
  if (marks.marks.empty()) return "";
  return "its GPU has ended every collective that was enqueued";
}

std::string DescribeGpuActivity(const journal::GpuSamples& host, const std::string& bus,
                                Ticks since, double age_seconds) {
  if (host.buses.empty() && age_seconds > kSilentSeconds) {
    return fmt::format("the GPUs' driver has not answered for {:.0f} s", age_seconds);
  }
  const auto found = std::ranges::find_if(
      host.buses, [&](const std::string& other) { return journal::SameBus(bus, other); });
  if (found == host.buses.end()) return "";
  const auto gpu = static_cast<std::int64_t>(found - host.buses.begin());
  const auto [samples, settled, xid_before] = SamplesSince(host, gpu, since);
  if (age_seconds > kSilentSeconds) {
    return fmt::format("GPU {}: its driver has not answered for {:.0f} s", gpu, age_seconds);
  }
  if (samples.empty()) return "";
  const std::string text =
      DescribeUtilization(samples, settled) + DescribeTrouble(samples.back(), xid_before);
  return text.empty() ? "" : fmt::format("GPU {}{}", gpu, text);
}

}  // namespace lockstep::verdict
