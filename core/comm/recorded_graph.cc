// Collectives that are captured once and replayed.
#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/comm/keep_graph.h"
#include "core/comm/recorded.h"
#include "core/device/native_stream.h"
#include "core/journal/device_marks.h"

namespace lockstep::comm {
namespace {

// What a call is for in the next replay.
journal::Annotation ReplayOf(const CapturedCalls& captured, std::size_t index) {
  const journal::Annotation& purpose = captured.purposes[index];
  if (purpose.purpose == journal::Purpose::kBucket) {
    return {journal::Purpose::kReplayedBucket, purpose.detail, captured.replays};
  }
  return {journal::Purpose::kReplay, static_cast<std::int32_t>(index), captured.replays};
}

}  // namespace

Result<CapturedCalls> RecordedCommunicator::Capture(std::span<const CollectiveCall> calls,
                                                    Stream& stream) {
  return CaptureDuring([&] {
    return KeepGraph(stream, [&](Stream& kept) -> Status {
      for (const CollectiveCall& call : calls) {
        LOCKSTEP_RETURN_IF_ERROR(Enqueue(call.operation, call.buffers, kept));
      }
      return OkStatus();
    });
  });
}

Result<CapturedCalls> RecordedCommunicator::CaptureDuring(const MakeGraph& capture) {
  LOCKSTEP_CHECK(capturing_ == nullptr, "one capture at a time");
  Capturing capturing;
  capturing_ = &capturing;
  Result<std::unique_ptr<device::StreamGraph>> graph = capture();
  EndCaptured(graph.ok());
  capturing_ = nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(capturing.calls.graph, std::move(graph));
  return std::move(capturing.calls);
}

// What the library hangs in is open; and what the graph is made of, until it is made.
Status RecordedCommunicator::EnqueueCaptured(const Operation& operation, const Buffers& buffers,
                                             Stream& stream) {
  EndCaptured(true);
  CapturedCalls& calls = capturing_->calls;
  const auto index = static_cast<std::int32_t>(calls.operations.size());
  calls.operations.push_back(operation);
  calls.purposes.push_back(journal::UnpackAnnotation(annotation_));
  AnnotateNext({journal::Purpose::kCapture, index, -1});
  JournalEvent& event = capturing_->last;
  event = NextEvent(operation);
  Append(event);
  event.kind = EventKind::kStart;
  Append(event);
  capturing_->open = true;
  const journal::MarkWords words = Words();
  auto* const native = dynamic_cast<device::NativeStream*>(&stream);
  calls.marked = native != nullptr && words.started != nullptr;
  Status status = calls.marked ? native->IncrementWord(words.started) : OkStatus();
  if (status.ok()) status = inner().Enqueue(operation, buffers, stream);
  if (status.ok() && calls.marked) status = native->IncrementWord(words.ended);
  if (!status.ok()) EndCaptured(false);
  return status;
}

void RecordedCommunicator::EndCaptured(bool well) {
  if (!std::exchange(capturing_->open, false)) return;
  JournalEvent& event = capturing_->last;
  event.kind = well ? EventKind::kEnd : EventKind::kError;
  event.ticks = NowTicks();
  Append(event);
}

// The marks stand at what came before; from there on the graph's own calls count.
Status RecordedCommunicator::LaunchGraph(CapturedCalls& captured, Stream& stream,
                                         std::uint64_t first_sequence) {
  LOCKSTEP_RETURN_IF_ERROR(stream.status());
  auto* const native = dynamic_cast<device::NativeStream*>(&stream);
  if (native == nullptr) return captured.graph->LaunchOn(&stream);
  if (captured.marked) {
    const journal::MarkWords words = Words();
    LOCKSTEP_RETURN_IF_ERROR(native->WriteWord(words.started, first_sequence));
    LOCKSTEP_RETURN_IF_ERROR(native->WriteWord(words.ended, first_sequence));
  }
  return native->LaunchOn([&](void* handle) { return captured.graph->LaunchOn(handle); });
}

Status RecordedCommunicator::Replay(CapturedCalls& captured, Stream& stream, Deadline deadline) {
  const std::uint64_t first_sequence = next_sequence_;
  std::vector<JournalEvent>& events = captured.events;
  events.clear();
  for (const Operation& operation : captured.operations) {
    AnnotateNext(ReplayOf(captured, events.size()));
    events.push_back(NextEvent(operation));
    Append(events.back());
  }
  ++captured.replays;
  for (JournalEvent& event : events) {
    event.kind = EventKind::kStart;
    Append(event);
  }
  const Ticks entry = NowTicks();
  Status status = LaunchGraph(captured, stream, first_sequence);
  last_launched_ = NowTicks();
  if (status.ok()) status = inner().Await(stream, deadline);
  const Ticks exit = NowTicks();
  if (status.code() == StatusCode::kDeadlineExceeded) return status;
  for (JournalEvent& event : events) {
    event.kind = status.ok() ? EventKind::kEnd : EventKind::kError;
    event.ticks = exit;
    Append(event);
  }
  if (status.ok()) last_interval_ = {entry, exit};
  return status;
}

}  // namespace lockstep::comm
