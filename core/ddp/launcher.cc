// Puts a collective behind what the compute stream did so far, and its result before what follows.
// Events are reused when they are reached and nobody else has them. Times are kept on request,
// because each collective then needs three events.
#include "core/ddp/launcher.h"

#include <utility>

#include "core/base/check.h"

namespace lockstep::ddp {

Result<void*> BucketMemory::Reserve(device::Device& device, Area area, std::int64_t bytes) {
  std::unique_ptr<device::Buffer>& buffer = areas_[static_cast<std::size_t>(area)];
  if (buffer == nullptr || buffer->bytes() < bytes) {
    buffer.reset();  // before there is another, which may need its room
    LOCKSTEP_ASSIGN_OR_RETURN(buffer, device.Allocate(bytes));
  }
  return buffer->data();
}

// An event of a capture must not be asked whether it is reached. A stream that is inline captures
// nothing. Otherwise events are left to themselves, the newest kept.
std::shared_ptr<device::Event> Launcher::NewEvent() {
  constexpr std::size_t kMostKept = 8192;
  constexpr int kMostTried = 4;
  const bool again = ports_.compute.inline_execution();
  for (int tried = 0; again && tried < kMostTried && !events_.empty(); ++tried) {
    std::shared_ptr<device::Event> event = std::move(events_.front());
    events_.pop_front();
    const bool is_free = event.use_count() == 1 && event->Reached();
    events_.push_back(event);
    if (!is_free) continue;
    event->Reset();
    return event;
  }
  events_.push_back(ports_.device.NewEvent());
  if (events_.size() > kMostKept) events_.pop_front();
  return events_.back();
}

Result<Work> Launcher::Launch(const Operation& operation, const collective::Buffers& buffers,
                              Purpose purpose, std::int32_t detail) {
  const journal::Annotation annotation = {purpose, detail, iteration_};
  if (ports_.observer != nullptr) ports_.observer->OnCollective(operation, annotation);
  Flight flight{operation, annotation, nullptr, nullptr, NewEvent()};
  const bool beside = &ports_.compute != &ports_.communication;
  if (beside || keep_times_) flight.ready = OrderBehindCompute();
  if (keep_times_) {
    flight.start = NewEvent();
    ports_.communication.Record(*flight.start);
  }
  LOCKSTEP_RETURN_IF_ERROR(ports_.communicator.Enqueue(operation, buffers, ports_.communication));
  ports_.communication.Record(*flight.done);
  Work work;
  work.done_ = flight.done;
  if (keep_times_) flights_.push_back(std::move(flight));
  return work;
}

std::shared_ptr<device::Event> Launcher::OrderBehindCompute() {
  std::shared_ptr<device::Event> ready = NewEvent();
  ports_.compute.Record(*ready);
  if (!ready->Reached()) ports_.communication.WaitFor(*ready);
  return ready;
}

Work Launcher::MarkCommunication() {
  Work work;
  work.done_ = NewEvent();
  ports_.communication.Record(*work.done_);
  return work;
}

bool Work::done() const { return done_ == nullptr || done_->Reached(); }

Status Launcher::Wait(const Work& work) {
  LOCKSTEP_CHECK(work.launched(), "waiting for a collective that was not launched");
  if (ports_.compute.inline_execution()) return WaitOnHost(work);
  ports_.compute.WaitFor(*work.done_);
  return OkStatus();
}

Status Launcher::WaitOnHost(const Work& work) {
  LOCKSTEP_CHECK(work.launched(), "waiting for a collective that was not launched");
  return work.done_->Await(deadline());
}

Status Launcher::Synchronize() { return ports_.compute.Synchronize(deadline()); }

Result<std::vector<CollectiveTimes>> Launcher::TakeTimes() {
  std::vector<CollectiveTimes> times;
  times.reserve(flights_.size());
  for (const Flight& flight : flights_) {
    LOCKSTEP_RETURN_IF_ERROR(flight.done->Await(deadline()));
    times.push_back({flight.operation, flight.annotation, flight.ready->ReachedAt(),
                     flight.start->ReachedAt(), flight.done->ReachedAt()});
  }
  flights_.clear();
  return times;
}

}  // namespace lockstep::ddp
