// Validates an operation like any backend and then does nothing. What a benchmark measures over it
// is Lockstep's own cost. Only Split talks to the other ranks, through the Meeting.
#include "core/comm/null/null_communicator.h"

#include <string>
#include <utility>

#include "fmt/format.h"

namespace lockstep::comm::null {
namespace {

class NullCommunicator final : public Communicator {
 public:
  NullCommunicator(int rank, int size, Meeting* meeting, std::string prefix)
      : rank_(rank), size_(size), meeting_(meeting), prefix_(std::move(prefix)) {}

  const Capabilities& capabilities() const override { return NullCapabilities(); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Status Enqueue(const Operation& operation, const Buffers& buffers, Stream& stream) override {
    LOCKSTEP_RETURN_IF_ERROR(ValidateCall(operation, buffers, rank_, size_));
    stream.Enqueue([] { return OkStatus(); });
    return stream.inline_execution() ? stream.status() : OkStatus();
  }

  Status Await(Stream& stream, Deadline deadline) override { return stream.Synchronize(deadline); }

  Status Abort() override { return OkStatus(); }

  Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    if (meeting_ == nullptr) {
      return Unsupported("null: ranks that never communicate split only through a meeting");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const SplitGroup group,
                              AgreeOnGroup(*meeting_, fmt::format("{}/{}", prefix_, splits_++),
                                           rank_, size_, color, key, deadline));
    if (group.rank < 0) return nullptr;
    return std::make_unique<NullCommunicator>(group.rank, group.size, meeting_, group.prefix);
  }

 private:
  int rank_;
  int size_;
  Meeting* meeting_;
  std::string prefix_;
  int splits_ = 0;
};

}  // namespace

const Capabilities& NullCapabilities() {
  static const Capabilities capabilities = {
      .backend = "null",
      .moves_data = false,
      .host_moves = false,
      .can_abort = true,  // nobody ever waits
      .supports = [](const Operation&) { return OkStatus(); },
  };
  return capabilities;
}

Result<std::unique_ptr<Communicator>> ConnectNull(int rank, int size, Meeting* meeting) {
  if (size < 1 || rank < 0 || rank >= size) {
    return InvalidInput("null: rank {} of {} ranks does not exist", rank, size);
  }
  return std::make_unique<NullCommunicator>(rank, size, meeting, "null");
}

}  // namespace lockstep::comm::null
