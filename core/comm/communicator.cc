#include "core/comm/communicator.h"

#include "fmt/format.h"

namespace lockstep::comm {
namespace {

Status Refuse(const Operation& operation, std::string_view why) {
  return InvalidInput("{}: {}", collective::Describe(operation), why);
}

// Of a broadcast only the root sends, and only the others receive.
bool Sends(const Operation& operation, int rank, int size) {
  const bool spared = operation.collective == Collective::kBroadcast && rank != operation.root;
  return !spared && collective::SendBytes(operation, size) > 0;
}

bool Receives(const Operation& operation, int rank, int size) {
  const auto spared = rank == operation.root ? Collective::kBroadcast : Collective::kReduce;
  return operation.collective != spared && collective::RecvBytes(operation, size) > 0;
}

}  // namespace

Status ExamineCall(const Operation& operation, const Buffers& buffers, int rank, int size) {
  if (operation.count < 0) return Refuse(operation, "the count must not be negative");
  const bool rooted = collective::InfoOf(operation.collective).rooted;
  if (rooted && (operation.root < 0 || operation.root >= size)) {
    return Refuse(operation, fmt::format("there is no such rank; choose 0 to {}", size - 1));
  }
  if (buffers.send == nullptr && Sends(operation, rank, size)) {
    return Refuse(operation, "there is no send buffer");
  }
  if (buffers.recv == nullptr && Receives(operation, rank, size)) {
    return Refuse(operation, "there is no receive buffer");
  }
  return OkStatus();
}

}  // namespace lockstep::comm
