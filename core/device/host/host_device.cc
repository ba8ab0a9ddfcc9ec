// Maps memory and touches every page, so that no page fault falls into a measured interval.
// Available memory is looked at before the mapping and every 64 MiB, because other ranks allocate
// at the same time.
#include "core/device/host/host_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/units.h"
#include "core/device/host/available_memory.h"
#include "core/device/host/fifo_stream.h"
#include "core/device/host/host_event.h"

namespace lockstep::device::host {
namespace {

// Left to the rest of the machine; below it the kernel starts to thrash.
constexpr std::int64_t kReserveBytes = std::int64_t{64} << 20;
// Touched between two looks at the available memory: about 15 ms of work for a look of 0.05 ms.
constexpr std::int64_t kTouchStepBytes = std::int64_t{64} << 20;

// An anonymous private mapping with the kernel's default page policy: what malloc gives a plain
// program for a large block. Huge pages are neither asked for nor refused, because the figures are
// to be those of a plain program.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(void* data, std::int64_t bytes, std::size_t mapped)
      : data_(data), bytes_(bytes), mapped_(mapped) {}
  ~HostBuffer() override { munmap(data_, mapped_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  void* data() override { return data_; }
  std::int64_t bytes() const override { return bytes_; }

 private:
  void* data_;
  std::int64_t bytes_;
  std::size_t mapped_;
};

Status NotEnough(std::int64_t bytes, std::int64_t available) {
  return EnvironmentError(
      "a buffer of {} does not fit: {} of host memory are available here (and {} of it are left "
      "alone); ask for smaller sizes or fewer ranks on this host",
      FormatBytes(bytes), FormatBytes(available), FormatBytes(kReserveBytes));
}

// One thread uses it. Allocates nothing.
class InlineStream final : public Stream {
 public:
  bool inline_execution() const override { return true; }
  void Enqueue(Work work) override {
    if (status_.ok()) [[likely]]
      status_ = work();
  }
  void Record(Event& event) override {
    const auto latch = HostEvent::LatchOf(event);
    latch->Promise();
    latch->Settle(status_);
  }
  void WaitFor(Event& event) override {
    if (!status_.ok()) return;
    status_ = HostEvent::LatchOf(event)->Await(Deadline::AfterSeconds(kLongestWaitSeconds));
  }
  Status Synchronize(Deadline) override { return status_; }
  Status status() const override { return status_; }
  bool ok() const override { return status_.ok(); }

 private:
  Status status_;
};

}  // namespace

Result<std::unique_ptr<Buffer>> HostDevice::Allocate(std::int64_t bytes) {
  if (bytes < 0) return InvalidInput("a buffer of {} bytes: ask for 0 or more", bytes);
  const std::int64_t available = AvailableMemoryBytes();
  if (bytes > available - kReserveBytes) return NotEnough(bytes, available);

  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const std::int64_t mapped = std::max<std::int64_t>(1, (bytes + page - 1) / page) * page;
  void* data = mmap(nullptr, static_cast<std::size_t>(mapped), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return EnvironmentError("a buffer of {}: mmap: {}; see ulimit -v, or ask for less",
                            FormatBytes(bytes), std::strerror(errno));
  }
  auto buffer = std::make_unique<HostBuffer>(data, bytes, static_cast<std::size_t>(mapped));
  for (std::int64_t done = 0; done < mapped; done += kTouchStepBytes) {
    if (done > 0 &&
        std::min(kTouchStepBytes, mapped - done) > AvailableMemoryBytes() - kReserveBytes) {
      return NotEnough(bytes, AvailableMemoryBytes() + done);
    }
    std::memset(static_cast<char*>(data) + done, 0,
                static_cast<std::size_t>(std::min(kTouchStepBytes, mapped - done)));
  }
  return buffer;
}

std::unique_ptr<Event> HostDevice::NewEvent() { return std::make_unique<HostEvent>(); }

std::unique_ptr<Stream> HostDevice::NewStream() { return std::make_unique<FifoStream>(); }

std::unique_ptr<Stream> HostDevice::NewInlineStream() { return std::make_unique<InlineStream>(); }

}  // namespace lockstep::device::host
