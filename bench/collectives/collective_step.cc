// The iteration of a collective: inputs are rewritten in part, the operations run or are replayed,
// and every element of the results is compared. Values follow from their place and a stamp
// (core/collective/pattern.h), so nothing has to be remembered of them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/collectives/steps.h"
#include "bench/measure/input_arena.h"
#include "bench/measure/step.h"
#include "core/collective/pattern.h"

namespace lockstep::bench::collectives {
namespace {

// Results that caches hold. After the comparison of such a one the next call took 3 to 19 % longer
// than in a loop that compares nothing (results/reference/measuring.md).
constexpr std::int64_t kMostSettledBytes = std::int64_t{16} << 20;

// A part of a result, and the inputs that its elements are made of.
struct Part {
  std::int64_t begin = 0;      // bytes of the receive buffer
  measure::ArenaRange inputs;  // of the arena, as long as the part
  std::int64_t element = 0;    // the pattern's index of the first one
};

// What a result is made of: elements of the inputs, in order, for each part of it that has such.
std::vector<Part> PartsOf(const collective::Operation& operation, const measure::ArenaRange& input,
                          std::int64_t recv_bytes, int rank, int world_size) {
  const std::int64_t size = collective::SizeOf(operation.type);
  if (operation.collective == collective::Collective::kReduceScatter) {
    return {{0, {rank * recv_bytes, recv_bytes}, 0}};
  }
  if (operation.collective != collective::Collective::kAllGather) {
    return {{0, {input.begin, recv_bytes}, input.begin / size}};
  }
  std::vector<Part> parts;
  for (int sender = 0; sender < world_size; ++sender) {
    parts.push_back({sender * input.bytes, input, sender * operation.count});
  }
  return parts;
}

std::byte* At(void* base, std::int64_t offset) { return static_cast<std::byte*>(base) + offset; }

class CollectiveStep final : public measure::Step {
 public:
  CollectiveStep(const measure::Bench& bench, std::uint32_t case_index)
      : bench_(bench),
        in_place_(bench.plan.cases[case_index].in_place),
        checks_(bench.checks()),
        stream_(&bench_.stream),
        graph_(bench.plan.nccl.graphs) {
    AddSlots(bench.plan.cases[case_index]);
  }

  Status Prepare() override {
    CoverInputs();
    return graph_ && !captured_ ? Capture() : OkStatus();
  }

  // Timed iterations of a rotation leave the inputs alone: a line that was just written is fetched
  // from this rank's cache by its peers, which makes 128 KiB 10 % slower than OSU's loop, where
  // nobody ever writes the inputs.
  Status Rewrite(bool first, bool warmup) override {
    if (!checks_) return OkStatus();
    ++bench_.stamp;
    const bool inputs = first || warmup || bench_.plan.check == plan::CheckMode::kFull;
    for (Slot& slot : slots_) RewriteSlot(slot, inputs);
    return OkStatus();
  }

  measure::Meeting meeting() const override { return measure::Meeting::kRun; }

  Result<comm::Interval> Run() override {
    comm::RecordedCommunicator& communicator = bench_.communicator;
    const bool meets_on_its_stream = !captured_ && stream_ == &bench_.stream;
    if (!meets_on_its_stream) {
      LOCKSTEP_RETURN_IF_ERROR(
          communicator.Enqueue(collective::kBarrierOperation, {}, bench_.stream));
    }
    if (captured_) {
      LOCKSTEP_RETURN_IF_ERROR(communicator.Replay(*captured_, *stream_, measure::Never()));
      return communicator.last_interval();
    }
    comm::Interval interval;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const Slot& slot = slots_[i];
      LOCKSTEP_RETURN_IF_ERROR(
          i == 0 && meets_on_its_stream
              ? communicator.EnqueueAfterBarrier(slot.operation, slot.buffers, *stream_)
              : communicator.Enqueue(slot.operation, slot.buffers, *stream_));
      if (i == 0) interval = communicator.last_interval();
    }
    interval.exit = communicator.last_interval().exit;
    if (slots_[0].operation.blocking == collective::Blocking::kNonblocking ||
        !stream_->inline_execution()) {
      LOCKSTEP_RETURN_IF_ERROR(communicator.Await(*stream_, measure::Never()));
      interval = communicator.last_interval();
    }
    return interval;
  }

  void Compare(measure::Comparison& comparison) override {
    if (!checks_) return;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      comparison.Add(static_cast<std::int64_t>(i), CheckSlot(slots_[i]));
    }
  }

  // The operations once more, which do not count. Only where the caches hold what the host moves; a
  // full check is to miss no call.
  Status Settle() override {
    std::int64_t bytes = 0;
    for (const Slot& slot : slots_) bytes += slot.recv_bytes;
    const bool settles = checks_ && bench_.plan.check != plan::CheckMode::kFull &&
                         bench_.communicator.capabilities().host_moves &&
                         bytes <= kMostSettledBytes;
    return settles ? Run().status() : OkStatus();
  }

 private:
  // One operation and its place in the buffers.
  struct Slot {
    collective::Operation operation;
    collective::Buffers buffers = {};
    collective::Pattern pattern;
    measure::ArenaRange input;     // of the arena (out of place)
    std::vector<Part> parts = {};  // of the result (out of place)
    std::int64_t recv_bytes = 0;
    bool sends = true;         // this rank's input matters
    std::int64_t windows = 1;  // of the rotation
    std::uint32_t stamp = 0;   // of the whole buffer (in place)
  };

  // Inputs that this case needs and that no case of its kind has written yet.
  void CoverInputs() {
    if (!checks_ || in_place_) return;
    ++bench_.stamp;
    for (const Slot& slot : slots_) {
      bench_.inputs.Select(slot.pattern, slot.sends);
      bench_.inputs.Cover(slot.input, bench_.stamp);
    }
  }

  // The library connects and registers in the operations' first run, which is an ordinary one.
  Status Capture() {
    LOCKSTEP_RETURN_IF_ERROR(Run().status());
    std::vector<comm::CollectiveCall> calls;
    for (const Slot& slot : slots_) calls.push_back({slot.operation, slot.buffers});
    LOCKSTEP_ASSIGN_OR_RETURN(captured_, bench_.communicator.Capture(calls, *stream_));
    return OkStatus();
  }

  void AddSlots(const plan::PlannedCase& planned) {
    const int rank = bench_.communicator.rank();
    std::int64_t send_offset = 0;
    std::int64_t recv_offset = 0;
    for (const collective::Operation& wanted : planned.operations) {
      const collective::Operation operation = comm::AsSupported(bench_.backend, wanted);
      if (operation.blocking != wanted.blocking) stream_ = bench_.side_stream;
      const std::int64_t send_bytes = collective::SendBytes(operation, bench_.plan.world_size);
      const std::int64_t recv_bytes = collective::RecvBytes(operation, bench_.plan.world_size);
      Slot slot{.operation = operation,
                .pattern = collective::Pattern(bench_.plan.seed, operation, bench_.plan.world_size,
                                               bench_.pattern_memory),
                .input = {send_offset, send_bytes},
                .recv_bytes = recv_bytes};
      slot.parts = PartsOf(operation, slot.input, recv_bytes, rank, bench_.plan.world_size);
      slot.buffers.recv = At(bench_.recv, recv_offset);
      slot.buffers.send = in_place_ ? slot.buffers.recv : bench_.inputs.At(send_offset);
      const collective::CollectiveInfo& info = collective::InfoOf(operation.collective);
      slot.sends = !info.rooted || info.reduces || rank == operation.root;
      slot.windows = bench_.WindowsOf(recv_bytes);
      slots_.push_back(slot);
      send_offset += plan::AlignedBytes(send_bytes);
      recv_offset += plan::AlignedBytes(recv_bytes);
    }
  }

  // Makes part of a slot's output impossible and, if asked, gives part of it new inputs.
  void RewriteSlot(Slot& slot, bool inputs) {
    if (in_place_) return RewriteInPlace(slot);
    const std::int64_t size = collective::SizeOf(slot.operation.type);
    const std::int64_t window = bench_.stamp % slot.windows;
    if (inputs) bench_.inputs.Rewrite(slot.input, window, slot.windows, bench_.stamp);
    const std::int64_t count = slot.recv_bytes / size;
    const std::int64_t begin = count * window / slot.windows;
    const std::int64_t end = count * (window + 1) / slot.windows;
    slot.pattern.Poison(At(slot.buffers.recv, begin * size), begin, end - begin);
  }

  // In place the result has overwritten the input, so all of it is written again.
  void RewriteInPlace(Slot& slot) {
    slot.stamp = bench_.stamp;
    const std::int64_t count = slot.recv_bytes / collective::SizeOf(slot.operation.type);
    if (slot.sends) {
      slot.pattern.FillSend(slot.buffers.recv, 0, count, bench_.communicator.rank(), slot.stamp);
    } else {
      slot.pattern.Poison(slot.buffers.recv, 0, count);
    }
  }

  collective::CheckReport CheckSlot(const Slot& slot) const {
    const std::int64_t size = collective::SizeOf(slot.operation.type);
    const int rank = bench_.communicator.rank();
    collective::CheckReport report;
    if (in_place_) {
      slot.pattern.CheckRecv(slot.buffers.recv, 0, slot.recv_bytes / size, rank, slot.stamp,
                             report);
      return report;
    }
    for (const Part& part : slot.parts) {
      bench_.inputs.ForEachStamp(
          part.inputs, [&](std::int64_t begin, std::int64_t bytes, std::uint32_t stamp) {
            const std::int64_t offset = begin - part.inputs.begin;
            slot.pattern.CheckRecv(At(slot.buffers.recv, part.begin + offset),
                                   part.element + offset / size, bytes / size, rank, stamp, report);
          });
    }
    // Elements are named by their place in the operation, not in the arena.
    for (collective::WrongElement& wrong : report.first) wrong.element -= slot.input.begin / size;
    return report;
  }

  measure::Bench bench_;
  bool in_place_;
  bool checks_;
  device::Stream* stream_;  // of the operations
  bool graph_;              // captured when the case is first visited, and then only replayed
  std::optional<comm::CapturedCalls> captured_;
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<measure::Step> MakeCollectiveStep(const measure::Bench& bench,
                                                  std::uint32_t case_index) {
  return std::make_unique<CollectiveStep>(bench, case_index);
}

}  // namespace lockstep::bench::collectives
