// One communicator and device that notes what it begins and ends, or does not: called one by one,
// or as a graph that is replayed.
#include "bench/marks/mark_sides.h"

#include <cstring>
#include <utility>

#include "core/comm/forwarding_communicator.h"
#include "core/stats/stats.h"

namespace lockstep::bench::marks {
namespace {

constexpr std::size_t kEvents = 1024;
constexpr double kLongestSeconds = 120;  // of one work; then something hangs

class CalledSide final : public PairSide {
 public:
  CalledSide(comm::RecordedCommunicator& communicator, device::Stream& stream,
             const MarkedWork& work, const TickScale& scale)
      : communicator_(communicator), stream_(stream), work_(work), scale_(scale) {}

  Result<double> Run(int times) override {
    std::vector<double> ticks;
    for (int i = 0; i < times; ++i) {
      const Ticks entry = NowTicks();
      LOCKSTEP_RETURN_IF_ERROR(communicator_.Enqueue(work_.operation, work_.buffers, stream_));
      if (!stream_.inline_execution()) {
        LOCKSTEP_RETURN_IF_ERROR(
            communicator_.Await(stream_, Deadline::AfterSeconds(kLongestSeconds)));
      }
      ticks.push_back(static_cast<double>(NowTicks() - entry));
    }
    return stats::Median(ticks) * scale_.ns_per_tick;
  }

 private:
  comm::RecordedCommunicator& communicator_;
  device::Stream& stream_;
  const MarkedWork work_;
  const TickScale scale_;
};

class ReplayedSide final : public PairSide {
 public:
  ReplayedSide(comm::RecordedCommunicator& communicator, device::Stream& stream,
               comm::CapturedCalls captured, const TickScale& scale)
      : communicator_(communicator),
        stream_(stream),
        captured_(std::move(captured)),
        scale_(scale) {}

  Result<double> Run(int times) override {
    std::vector<double> ticks;
    for (int i = 0; i < times; ++i) {
      LOCKSTEP_RETURN_IF_ERROR(
          communicator_.Replay(captured_, stream_, Deadline::AfterSeconds(kLongestSeconds)));
      const comm::Interval& interval = communicator_.last_interval();
      ticks.push_back(static_cast<double>(interval.exit - interval.entry));
    }
    return stats::Median(ticks) * scale_.ns_per_tick /
           static_cast<double>(captured_.operations.size());
  }

 private:
  comm::RecordedCommunicator& communicator_;
  device::Stream& stream_;
  comm::CapturedCalls captured_;
  const TickScale scale_;
};

}  // namespace

MarkSides::Journaled::Journaled(comm::Communicator& inner)
    : memory(journal::JournalBytes(kEvents) / sizeof(Line) + 1),
      journal(journal::JournalWriter::Create(std::as_writable_bytes(std::span(memory)), kEvents)),
      communicator(std::make_unique<comm::ForwardingCommunicator>(inner), journal, 0) {}

Result<std::unique_ptr<MarkSides>> MarkSides::Open(comm::Communicator& communicator,
                                                   device::Device& device, device::Stream& stream,
                                                   std::span<std::byte> marks) {
  std::unique_ptr<MarkSides> sides(new MarkSides(communicator, stream));
  std::memset(marks.data(), 0, marks.size());
  LOCKSTEP_ASSIGN_OR_RETURN(const bool marks_written,
                            sides->marked_.communicator.MarkOn(marks, device));
  if (!marks_written) {
    return Unsupported("the device '{}' has no streams that mark", device.name());
  }
  sides->method_ = journal::ReadDeviceMarks(marks).method;
  return sides;
}

Result<std::unique_ptr<PairSide>> MarkSides::Make(const MarkedWork& work, bool marked) {
  comm::RecordedCommunicator& communicator = (marked ? marked_ : plain_).communicator;
  auto called = std::make_unique<CalledSide>(communicator, stream_, work, scale_);
  LOCKSTEP_RETURN_IF_ERROR(called->Run(1).status());
  if (work.calls_in_graph == 0) return std::unique_ptr<PairSide>(std::move(called));
  const std::vector<comm::CollectiveCall> calls(static_cast<std::size_t>(work.calls_in_graph),
                                                {work.operation, work.buffers});
  LOCKSTEP_ASSIGN_OR_RETURN(comm::CapturedCalls captured, communicator.Capture(calls, stream_));
  return std::unique_ptr<PairSide>(
      std::make_unique<ReplayedSide>(communicator, stream_, std::move(captured), scale_));
}

}  // namespace lockstep::bench::marks
