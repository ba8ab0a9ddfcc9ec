// One rank's side of a simulated group: posts calls, waits for their fates, copies what was
// delivered. Waiting is that of the fiber. Split is agreed on in memory that all ranks share.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/comm/sim/state.h"

namespace lockstep::comm::sim {
namespace {

// What kNccl's barrier sends.
constexpr float kZero = 0;
constexpr std::size_t kMostPosted = 1 << 16;

class SimCommunicator final : public Communicator {
 public:
  SimCommunicator(SimState& state, std::shared_ptr<SimGroup> group, int rank)
      : state_(state), group_(std::move(group)), rank_(rank) {}
  ~SimCommunicator() override {
    for (const Call& call : posted_) Forget(call);
  }
  SimCommunicator(const SimCommunicator&) = delete;
  SimCommunicator& operator=(const SimCommunicator&) = delete;

  const Capabilities& capabilities() const override { return SimCapabilities(rules()); }
  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  Status Enqueue(const Operation& operation, const Buffers& buffers, Stream& stream) override {
    LOCKSTEP_RETURN_IF_ERROR(ValidateCall(operation, buffers, rank_, size()));
    LOCKSTEP_RETURN_IF_ERROR(capabilities().supports(operation));
    const std::uint64_t sequence = next_sequence_++;
    stream.Enqueue(
        [this, operation, buffers, sequence] { return Run(operation, buffers, sequence); });
    return stream.inline_execution() ? stream.status() : OkStatus();
  }
  Status Await(Stream& stream, Deadline deadline) override {
    LOCKSTEP_RETURN_IF_ERROR(stream.Synchronize(deadline));
    const std::int64_t until_ns = state_.scheduler.TimeOf(deadline);
    Status first;
    while (!posted_.empty()) {
      const Call call = posted_.front();
      Status status = Complete(call, until_ns);
      if (status.code() == StatusCode::kDeadlineExceeded) return status;
      posted_.pop_front();
      if (first.ok()) first = std::move(status);
    }
    return first;
  }

  Status Abort() override {
    aborted_ = true;
    if (rules() == SimRules::kGloo) group_->Close(rank_);
    aborting_.NotifyAll(state_.scheduler);
    for (const SimOpenCall& open : std::vector<SimOpenCall>(self().open)) {
      if (open.group == group_->id()) open.call->changed.NotifyAll(state_.scheduler);
    }
    return OkStatus();
  }
  Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    const std::shared_ptr<SimSplit> split = state_.SplitOf(*group_, splits_++);
    split->answers[static_cast<std::size_t>(rank_)] = {color, key};
    if (split->here == split->answers.size()) FormGroups(*split);
    const std::int64_t until_ns = state_.scheduler.TimeOf(deadline);
    while (split->here < split->answers.size()) {
      const auto woken = state_.scheduler.Wait(split->changed, until_ns, "the others in a split");
      if (woken == Scheduler::Woken::kCancelled) return Terminated("this simulated rank is over");
      if (woken == Scheduler::Woken::kDeadline) {
        return DeadlineExceeded("split: not all ranks came before the deadline");
      }
    }
    if (color < 0) return nullptr;
    const auto& group = split->groups.at(color);
    return NewSimCommunicator(state_, group, group->PlaceOf(member()));
  }

 private:
  using Call = std::shared_ptr<SimCall>;

  SimRules rules() const { return state_.options.rules; }
  int member() const { return group_->members()[static_cast<std::size_t>(rank_)]; }
  SimRank& self() { return state_.At(member()); }
  Status Run(const Operation& operation, const Buffers& buffers, std::uint64_t sequence) {
    const Task* task = state_.scheduler.current();
    LOCKSTEP_CHECK(task != nullptr, "only what SimWorld::Run runs can communicate");
    if (task->cancelled()) return Terminated("this simulated rank is over");
    if (aborted_) return SystemFailed(std::string(capabilities().backend) + ": aborted");
    const bool empty = operation.count == 0 && operation.collective != Collective::kBarrier;
    if (empty && rules() == SimRules::kGloo) return OkStatus();
    if (posted_.size() >= kMostPosted) {
      return Unsupported("sim: 65,536 operations were posted without an Await; Await sooner");
    }
    try {
      Call call = Post(operation, buffers, sequence);
      if (operation.blocking == Blocking::kBlocking) return Complete(call, kNever);
      posted_.push_back(std::move(call));
      return OkStatus();
    } catch (const std::bad_alloc&) {
      return EnvironmentError(
          "sim: {}: all ranks together need more memory than this process may have; simulate fewer "
          "ranks or smaller messages, or raise ulimit -v",
          collective::Describe(operation));
    }
  }
  Call Post(const Operation& operation, const Buffers& buffers, std::uint64_t sequence) {
    auto call = std::make_shared<SimCall>();
    call->asked = operation;
    call->run = AsRun(rules(), operation);
    call->buffers = buffers;
    if (call->run.collective != operation.collective) call->buffers = {&kZero, nullptr};
    call->rank = rank_;
    call->size = size();
    call->sequence = sequence;
    call->place = NextPlace(call->run);
    self().open.push_back({group_->id(), call});
    try {
      group_->Post(call);
    } catch (...) {
      Forget(call);
      throw;
    }
    return call;
  }
  Status Complete(const Call& call, std::int64_t until_ns) {
    struct Forgetting {
      SimCommunicator& self;
      const Call& call;
      bool keep = false;
      ~Forgetting() {
        if (!keep) self.Forget(call);
      }
    } forgetting{*this, call};
    Scheduler& scheduler = state_.scheduler;
    for (;;) {
      if (aborted_) return SystemFailed(std::string(capabilities().backend) + ": aborted");
      if (call->settled && scheduler.now_ns() >= call->done_at_ns) break;
      if (scheduler.now_ns() >= until_ns) {
        forgetting.keep = true;
        return DeadlineExceeded(collective::Describe(call->asked) +
                                " did not complete before the deadline");
      }
      const std::int64_t next = call->settled ? std::min(until_ns, call->done_at_ns) : until_ns;
      WaitList& list = call->settled ? aborting_ : call->changed;
      if (scheduler.Wait(list, next, "a collective") == Scheduler::Woken::kCancelled) {
        return Terminated("this simulated rank is over");
      }
    }
    const SimDelivery& delivery = call->delivery;
    if (delivery.bytes > 0 && call->buffers.recv != nullptr) {
      const std::byte* from = delivery.data->data() + delivery.offset;
      if (call->buffers.recv != from) std::memmove(call->buffers.recv, from, delivery.bytes);
    }
    return call->status;
  }

  // Its rank is done with the call, whatever became of it.
  void Forget(const Call& call) {
    group_->Withdraw(*call);
    std::erase_if(self().open, [&](const SimOpenCall& open) { return open.call == call; });
  }
  SimPlace NextPlace(const Operation& operation) {
    if (collective::IsMessage(operation.collective)) {
      const bool sends = operation.collective == Collective::kSend;
      const int from = sends ? rank_ : operation.root;
      const int to = sends ? operation.root : rank_;
      return PlaceOfMessage(from, to, messages_[PlaceOfMessage(from, to, 0)]++);
    }
    return PlaceOf(rules(), operation.collective, run_++,
                   nth_[static_cast<std::size_t>(operation.collective)]++);
  }
  // The groups that follow when all have come; ordered by key, then rank.
  void FormGroups(SimSplit& split) {
    std::map<int, std::vector<std::tuple<int, int, int>>> colors;  // key, rank, member
    for (int r = 0; r < size(); ++r) {
      const auto [color, key] = split.answers[static_cast<std::size_t>(r)];
      const int its_member = group_->members()[static_cast<std::size_t>(r)];
      if (color >= 0) colors[color].emplace_back(key, r, its_member);
    }
    for (auto& [color, ranks] : colors) {
      std::ranges::sort(ranks);
      std::vector<int> members;
      for (const auto& [key, r, its_member] : ranks) members.push_back(its_member);
      split.groups[color] = state_.NewGroup(std::move(members));
    }
    split.changed.NotifyAll(state_.scheduler);
  }

  SimState& state_;
  std::shared_ptr<SimGroup> group_;
  int rank_;
  bool aborted_ = false;
  WaitList aborting_;
  std::uint64_t next_sequence_ = 0;  // of the calls of this rank
  std::uint64_t run_ = 0;            // calls that came to a meeting place, but for messages
  std::array<std::uint64_t, 8> nth_{};
  std::map<SimPlace, std::uint64_t> messages_;  // by direction and peer
  std::uint64_t splits_ = 0;
  std::deque<Call> posted_;  // non-blocking, not awaited yet
};

}  // namespace

std::unique_ptr<Communicator> NewSimCommunicator(SimState& state, std::shared_ptr<SimGroup> group,
                                                 int rank) {
  return std::make_unique<SimCommunicator>(state, std::move(group), rank);
}

}  // namespace lockstep::comm::sim
