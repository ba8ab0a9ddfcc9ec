// Writes the journal around the library's calls. Stamps are taken next to the call, and everything
// else stays outside of them. Locks are taken only once work runs beside the caller. On a device's
// stream, host functions before and after the operation write the events.
#include "core/comm/recorded.h"

#include <mutex>
#include <utility>

#include "core/base/check.h"
#include "core/device/forwarding_stream.h"
#include "core/journal/device_marks.h"

namespace lockstep::comm {

struct RecordedCommunicator::Family {
  explicit Family(journal::JournalWriter& writer, std::uint16_t first_free)
      : journal(writer), next_id(first_free) {}

  journal::JournalWriter& journal;
  std::uint16_t next_id;
  std::span<std::byte> marks;  // of the device; empty: none
};

struct RecordedCommunicator::Pending {
  std::mutex mutex;  // of what follows, once the journal is shared
  // Non-blocking operations that were posted, oldest first.
  std::vector<JournalEvent> posted;
  // Since the last Await, on streams that run beside the caller or by non-blocking operations.
  Interval interval;
  bool any = false;
  bool failed = false;  // an Await told an error: what ends afterwards did not end well

  void Begin(Ticks entry) {
    if (!any) interval.entry = entry;
    any = true;
  }
};

namespace {

constexpr std::size_t kMostPosted = 1 << 16;
constexpr std::size_t kUsuallyPosted = 1 << 10;

// A lock only where other threads may write.
std::unique_lock<std::mutex> LockIf(bool shared, std::mutex& mutex) {
  return shared ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

// What is launched through it, one operation, stands between two writes of the device into `words`.
class MarkingStream final : public device::ForwardingNativeStream {
 public:
  MarkingStream(Stream& stream, device::NativeStream& native, const journal::MarkWords& words,
                std::uint64_t number)
      : ForwardingNativeStream(stream, native), words_(words), number_(number) {}

  Status LaunchOn(const Launch& launch) override {
    LOCKSTEP_RETURN_IF_ERROR(native().WriteWord(words_.started, number_));
    LOCKSTEP_RETURN_IF_ERROR(native().LaunchOn(launch));
    return native().WriteWord(words_.ended, number_);
  }
  device::NativeStream& Bare() override { return native(); }

 private:
  const journal::MarkWords words_;
  const std::uint64_t number_;
};

}  // namespace

// The stream that the inner communicator sees when it enqueues on one that runs beside the caller:
// what it enqueues is run between a kStart and a kEnd.
class RecordedCommunicator::RecordingStream final : public device::ForwardingStream {
 public:
  RecordingStream(Stream& stream, std::shared_ptr<Family> family, std::shared_ptr<Pending> pending,
                  const JournalEvent& event, Blocking blocking)
      : ForwardingStream(stream),
        family_(std::move(family)),
        pending_(std::move(pending)),
        event_(event),
        blocking_(blocking) {}

  bool inline_execution() const override { return false; }
  void Enqueue(Work work) override {
    LOCKSTEP_CHECK(!used_, "a backend enqueues one piece of work for an operation");
    used_ = true;
    inner().Enqueue([family = family_, pending = pending_, event = event_, blocking = blocking_,
                     work = std::move(work)]() mutable {
      return Run(*family, *pending, event, blocking, work);
    });
  }

  // On a stream with a handle the operation is no work of ours: what writes kStart and kEnd is
  // enqueued before and after it, and runs in the order of the stream.
  static Status EnqueueNative(Communicator& inner, const Operation& operation,
                              const Buffers& buffers, Stream& stream,
                              std::shared_ptr<Family> family, std::shared_ptr<Pending> pending,
                              JournalEvent& event) {
    event.kind = EventKind::kStart;
    stream.Do([family, pending, event] { Start(*family, *pending, event); });
    Interval launch;  // of the host, while the stream works
    const Status status = Call(inner, *family, operation, buffers, stream, event, launch);
    stream.Enqueue([family, pending, event, refused = !status.ok()]() mutable {
      event.ticks = NowTicks();
      std::lock_guard lock(pending->mutex);
      pending->interval.exit = event.ticks;
      event.kind = refused || pending->failed ? EventKind::kError : EventKind::kEnd;
      family->journal.Append(event);
      return OkStatus();
    });
    return status;
  }

 private:
  static void Start(Family& family, Pending& pending, const JournalEvent& event) {
    family.journal.Append(event);
    std::lock_guard lock(pending.mutex);
    pending.Begin(NowTicks());
  }
  static Status Run(Family& family, Pending& pending, JournalEvent& event, Blocking blocking,
                    const Work& work) {
    event.kind = EventKind::kStart;
    Start(family, pending, event);
    Status status = work();
    const Ticks exit = NowTicks();
    std::lock_guard lock(pending.mutex);
    pending.interval.exit = exit;
    if (blocking == Blocking::kNonblocking && status.ok()) {
      pending.posted.push_back(event);
      return status;
    }
    event.kind = status.ok() ? EventKind::kEnd : EventKind::kError;
    event.ticks = exit;
    family.journal.Append(event);
    return status;
  }

  std::shared_ptr<Family> family_;
  std::shared_ptr<Pending> pending_;
  JournalEvent event_;
  Blocking blocking_;
  bool used_ = false;
};

RecordedCommunicator::RecordedCommunicator(std::unique_ptr<Communicator> inner,
                                           journal::JournalWriter& journal,
                                           std::uint16_t communicator_id)
    : RecordedCommunicator(
          std::move(inner),
          std::make_shared<Family>(journal, static_cast<std::uint16_t>(communicator_id + 1)),
          communicator_id) {}

RecordedCommunicator::RecordedCommunicator(std::unique_ptr<Communicator> inner,
                                           std::shared_ptr<Family> family,
                                           std::uint16_t communicator_id)
    : ForwardingCommunicator(std::move(inner)),
      family_(std::move(family)),
      pending_(std::make_shared<Pending>()),
      communicator_id_(communicator_id) {
  pending_->posted.reserve(kUsuallyPosted);
}

JournalEvent RecordedCommunicator::NextEvent(const Operation& operation) {
  JournalEvent event;
  event.kind = EventKind::kEnqueue;
  event.communicator = communicator_id_;
  event.sequence = next_sequence_++;
  event.nth = ++nth_[static_cast<std::size_t>(operation.collective)];
  event.messages_before = messages_.Next(operation.collective, operation.root);
  event.collective = operation.collective;
  event.type = operation.type;
  event.reduction = operation.reduction;
  event.count = operation.count;
  event.root = operation.root;
  event.value = std::exchange(annotation_, 0);
  return event;
}

void RecordedCommunicator::EnterPhase(journal::Phase phase) { family_->journal.EnterPhase(phase); }

void RecordedCommunicator::Append(const JournalEvent& event) { family_->journal.Append(event); }

Status RecordedCommunicator::Enqueue(const Operation& operation, const Buffers& buffers,
                                     Stream& stream) {
  if (capturing_ != nullptr) [[unlikely]]
    return EnqueueCaptured(operation, buffers, stream);
  const bool beside = !stream.inline_execution();
  if (beside) family_->journal.Share();
  JournalEvent event = NextEvent(operation);
  Append(event);
  if (!stream.ok()) [[unlikely]] {
    event.kind = EventKind::kError;
    Append(event);
    return stream.status();
  }
  if (beside) return EnqueueBeside(operation, buffers, stream, event);
  event.kind = EventKind::kStart;
  Append(event);
  return RunInline(operation, buffers, stream, event);
}

Result<bool> RecordedCommunicator::MarkOn(std::span<std::byte> memory, device::Device& device) {
  auto* const native = dynamic_cast<device::NativeDevice*>(&device);
  if (native == nullptr) return false;
  LOCKSTEP_ASSIGN_OR_RETURN(const device::WordWriter writer, native->ShareMemory(memory));
  journal::SetMarkMethod(memory, writer == device::WordWriter::kKernel
                                     ? journal::MarkMethod::kKernel
                                     : journal::MarkMethod::kStreamOperations);
  family_->marks = memory;
  return true;
}

Status RecordedCommunicator::Call(Communicator& inner, const Family& family,
                                  const Operation& operation, const Buffers& buffers,
                                  Stream& stream, const JournalEvent& event, Interval& call) {
  if (family.marks.empty()) [[likely]]
    return inner.EnqueueTimed(operation, buffers, stream, call);
  auto* const native = dynamic_cast<device::NativeStream*>(&stream);
  const journal::MarkWords words = journal::MarkWordsOf(family.marks, event.communicator);
  if (native == nullptr || words.started == nullptr) {
    return inner.EnqueueTimed(operation, buffers, stream, call);
  }
  MarkingStream marked(stream, *native, words, event.sequence + 1);
  return inner.EnqueueTimed(operation, buffers, marked, call);
}

Status RecordedCommunicator::RunInline(const Operation& operation, const Buffers& buffers,
                                       Stream& stream, JournalEvent& event) {
  Interval call;
  Status status = Call(inner(), *family_, operation, buffers, stream, event, call);
  if (operation.blocking == Blocking::kNonblocking && status.ok()) {
    const auto lock = LockIf(family_->journal.shared(), pending_->mutex);
    pending_->Begin(call.entry);
    LOCKSTEP_CHECK(pending_->posted.size() < kMostPosted, "Await after 65,536 posted operations");
    pending_->posted.push_back(event);
    return status;
  }
  event.kind = status.ok() ? EventKind::kEnd : EventKind::kError;
  event.ticks = call.exit;
  Append(event);
  if (status.ok()) last_interval_ = call;
  return status;
}

Status RecordedCommunicator::EnqueueAfterBarrier(const Operation& operation, const Buffers& buffers,
                                                 Stream& stream) {
  if (!stream.inline_execution() || operation.blocking != Blocking::kBlocking ||
      capturing_ != nullptr || family_->journal.shared() || !stream.ok()) {
    LOCKSTEP_RETURN_IF_ERROR(Enqueue(collective::kBarrierOperation, {}, stream));
    return Enqueue(operation, buffers, stream);
  }
  JournalEvent barrier = NextEvent(collective::kBarrierOperation);
  Append(barrier);
  barrier.kind = EventKind::kStart;
  Append(barrier);
  JournalEvent event = NextEvent(operation);
  std::array<JournalEvent, 3> next = {barrier, event, event};
  next[0].kind = EventKind::kEnd;
  next[2].kind = event.kind = EventKind::kStart;
  family_->journal.Prepare(next);
  Status status = inner().Enqueue(collective::kBarrierOperation, {}, stream);
  if (!status.ok()) [[unlikely]] {
    barrier.kind = EventKind::kError;
    Append(barrier);
    return status;
  }
  family_->journal.Publish(NowTicks());
  return RunInline(operation, buffers, stream, event);
}

Status RecordedCommunicator::EnqueueBeside(const Operation& operation, const Buffers& buffers,
                                           Stream& stream, JournalEvent& event) {
  const bool native = dynamic_cast<device::NativeStream*>(&stream) != nullptr;
  RecordingStream recording(stream, family_, pending_, event, operation.blocking);
  Status status = native ? RecordingStream::EnqueueNative(inner(), operation, buffers, stream,
                                                          family_, pending_, event)
                         : inner().Enqueue(operation, buffers, recording);
  if (!status.ok() && !native) {  // refused: nothing was enqueued
    event.kind = EventKind::kError;
    Append(event);
  }
  return status;
}

Status RecordedCommunicator::Await(Stream& stream, Deadline deadline) {
  Status status = inner().Await(stream, deadline);
  const Ticks exit = NowTicks();
  const auto lock = LockIf(family_->journal.shared(), pending_->mutex);
  if (status.code() == StatusCode::kDeadlineExceeded) return status;
  if (!status.ok()) pending_->failed = true;
  if (!pending_->any) return status;
  for (JournalEvent& event : pending_->posted) {
    event.kind = status.ok() ? EventKind::kEnd : EventKind::kError;
    event.ticks = exit;
    family_->journal.Append(event);
  }
  if (!pending_->posted.empty()) pending_->interval.exit = exit;
  pending_->posted.clear();
  pending_->any = false;
  if (status.ok()) last_interval_ = pending_->interval;
  return status;
}

journal::MarkWords RecordedCommunicator::Words() const {
  return family_->marks.empty() ? journal::MarkWords{}
                                : journal::MarkWordsOf(family_->marks, communicator_id_);
}

Result<std::unique_ptr<Communicator>> RecordedCommunicator::Split(int color, int key,
                                                                  Deadline deadline) {
  const std::uint16_t id = family_->next_id++;
  JournalEvent event;
  event.kind = EventKind::kSplit;
  event.communicator = communicator_id_;
  event.sequence = next_split_++;
  event.count = id;
  event.root = color;
  Append(event);
  Result<std::unique_ptr<Communicator>> child = inner().Split(color, key, deadline);
  event.kind = EventKind::kSplitEnd;
  event.value = child.ok() ? 0 : 1;
  Append(event);
  if (!child.ok() || *child == nullptr) return child;
  return std::unique_ptr<Communicator>(new RecordedCommunicator(std::move(*child), family_, id));
}

}  // namespace lockstep::comm
