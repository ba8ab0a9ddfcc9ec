// A decorator that journals every operation of a communicator.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/comm/forwarding_communicator.h"
#include "core/device/device.h"
#include "core/device/native_stream.h"
#include "core/journal/event.h"
#include "core/journal/journal.h"
#include "core/journal/message_count.h"
#include "core/journal/purpose.h"

namespace lockstep::journal {
struct MarkWords;  // core/journal/device_marks.h
}  // namespace lockstep::journal

namespace lockstep::comm {

using journal::EventKind;
using journal::JournalEvent;

struct CollectiveCall {
  Operation operation;
  Buffers buffers;
};

// Made and replayed by one RecordedCommunicator. Other shapes or buffers are another capture.
struct CapturedCalls {
  std::vector<Operation> operations;
  std::vector<journal::Annotation> purposes;  // of the operations, when they were captured
  std::unique_ptr<device::StreamGraph> graph;
  bool marked = false;  // the device counts each call's begin and end
  std::int32_t replays = 0;
  std::vector<JournalEvent> events;  // of the newest replay
};

// Writes kEnqueue before the operation is enqueued, kStart and kEnd from the stream (kError in
// place of kEnd when it failed, or was refused or never run because the stream failed). Sequence
// numbers count all operations of this communicator from 0; `nth` of an event counts those of the
// same collective from 1. A non-blocking operation ends in the Await that completes it; when that
// fails with an error, all that it waited for get a kError (which of them failed is not known),
// and at a deadline none gets an end. Those of a group are recorded rightly: they end in the Await.
//
// Threads: on inline streams only the caller writes to the journal. On other streams kStart and
// kEnd come from the stream's thread, and the journal is shared from the first such Enqueue on.
class RecordedCommunicator : public ForwardingCommunicator {
 public:
  RecordedCommunicator(std::unique_ptr<Communicator> inner, journal::JournalWriter& journal,
                       std::uint16_t communicator_id);

  Status Enqueue(const Operation& operation, const Buffers& buffers, Stream& stream) override;
  // A barrier, and the operation behind it. Of a blocking operation on an inline stream nothing of
  // ours lies between the two but a few stores: what ranks do there, each for itself, would count
  // as a part of the operation, because it starts when the last of them has come.
  Status EnqueueAfterBarrier(const Operation& operation, const Buffers& buffers, Stream& stream);
  Status Await(Stream& stream, Deadline deadline) override;
  // Children and their children get the ids after that of the first communicator in order of the
  // calls to Split on this rank (also of those that leave it out): ranks agree on an id when they
  // split the same communicators in the same order. Groups of different color share one. Journals
  // kSplit before and kSplitEnd after.
  Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override;

  // Keeps what these calls put on `stream` (a graph, where its device has such things), to be
  // replayed as a whole; they are not run. All ranks capture the same calls, and have made each
  // before, so that the library need not connect or register anything meanwhile. Buffers must stay
  // as long as the result, which must not outlive this communicator. Calls are journaled as they
  // are captured, for the purpose kCapture; the last one ends when the graph is made.
  Result<CapturedCalls> Capture(std::span<const CollectiveCall> calls, Stream& stream);
  // The same of whatever calls this communicator gets while `capture` runs, which makes the graph
  // of them and of what else it keeps.
  using MakeGraph = std::function<Result<std::unique_ptr<device::StreamGraph>>()>;
  Result<CapturedCalls> CaptureDuring(const MakeGraph& capture);
  // Runs captured calls on the stream, where no other operation is pending, and waits for all of
  // them. A kEnqueue and a kStart of each come before, a kEnd (or kError) of each after all; their
  // purpose says kReplay, or kReplayedBucket. Between them nobody but the device is at work.
  Status Replay(CapturedCalls& captured, Stream& stream, Deadline deadline);

  // Why the next operation is called: the events of it carry this, those of later ones do not.
  void AnnotateNext(const journal::Annotation& annotation) {
    annotation_ = journal::PackAnnotation(annotation);
  }
  // From now on the device writes into `memory` (core/journal/device_marks.h; whole pages, which
  // outlive the device) when it begins and ends an operation of this communicator or a later child.
  // False: `device` has no streams with handles, and nothing is written.
  Result<bool> MarkOn(std::span<std::byte> memory, device::Device& device);
  void EnterPhase(journal::Phase phase);

  // Of the last blocking operation that completed on an inline stream, of the last Replay, or of
  // the operations since the one before that Await completed: from before the first post to after
  // the last completion.
  const Interval& last_interval() const { return last_interval_; }
  // When the host was done launching the last Replay.
  Ticks last_launched() const { return last_launched_; }
  std::uint64_t next_sequence() const { return next_sequence_; }

 private:
  struct Family;   // shared with the children
  struct Pending;  // operations that an Await has not completed yet; shared with the streams
  class RecordingStream;

  RecordedCommunicator(std::unique_ptr<Communicator> inner, std::shared_ptr<Family> family,
                       std::uint16_t communicator_id);
  JournalEvent NextEvent(const Operation& operation);
  // From where the operation's kStart is written on.
  Status RunInline(const Operation& operation, const Buffers& buffers, Stream& stream,
                   JournalEvent& event);
  Status EnqueueBeside(const Operation& operation, const Buffers& buffers, Stream& stream,
                       JournalEvent& event);
  Status EnqueueCaptured(const Operation& operation, const Buffers& buffers, Stream& stream);
  void EndCaptured(bool well);
  journal::MarkWords Words() const;
  Status LaunchGraph(CapturedCalls& captured, Stream& stream, std::uint64_t first_sequence);
  void Append(const JournalEvent& event);
  // The inner communicator's call; on streams with handles between two marks, if there are any.
  static Status Call(Communicator& inner, const Family& family, const Operation& operation,
                     const Buffers& buffers, Stream& stream, const JournalEvent& event,
                     Interval& call);

  std::shared_ptr<Family> family_;
  std::shared_ptr<Pending> pending_;
  std::uint16_t communicator_id_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t next_split_ = 0;
  std::array<std::uint32_t, 8> nth_{};  // by Collective
  journal::MessageCount messages_;
  std::int64_t annotation_ = 0;  // of the next operation
  Interval last_interval_;
  Ticks last_launched_ = 0;
  struct Capturing {
    CapturedCalls calls;
    bool open = false;  // the last one's event
    JournalEvent last;
  };
  Capturing* capturing_ = nullptr;  // under way
};

}  // namespace lockstep::comm
