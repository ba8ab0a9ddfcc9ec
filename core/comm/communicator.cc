#include "core/comm/communicator.h"

#include <string_view>

#include "fmt/format.h"

namespace lockstep::comm {
namespace {

Status Refuse(const collective::Operation& operation, std::string_view why) {
  return InvalidInput(fmt::format("{}: {}", collective::Describe(operation), why));
}

}  // namespace

Status ExamineCall(const collective::Operation& operation, const collective::Buffers& buffers,
                   int rank, int size) {
  if (operation.count < 0) return Refuse(operation, "the count must not be negative");
  const bool rooted = collective::InfoOf(operation.collective).rooted;
  if (rooted && (operation.root < 0 || operation.root >= size)) {
    return Refuse(operation, fmt::format("there is no such rank; choose 0 to {}", size - 1));
  }
  if (operation.count == 0) return OkStatus();
  const bool is_root = rank == operation.root;
  const bool sends = operation.collective != collective::Collective::kBarrier &&
                     operation.collective != collective::Collective::kRecv &&
                     (operation.collective != collective::Collective::kBroadcast || is_root);
  const bool receives = operation.collective != collective::Collective::kBarrier &&
                        operation.collective != collective::Collective::kSend &&
                        (operation.collective != collective::Collective::kReduce || is_root) &&
                        (operation.collective != collective::Collective::kBroadcast || !is_root);
  if (sends && buffers.send == nullptr) return Refuse(operation, "there is no send buffer");
  if (receives && buffers.recv == nullptr) return Refuse(operation, "there is no receive buffer");
  return OkStatus();
}

}  // namespace lockstep::comm
