// A split goes through a meeting: each rank leaves its color and key there, and reads all others'.
#include "core/comm/communicator.h"

#include <sstream>
#include <utility>

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

Result<SplitGroup> AgreeOnGroup(Meeting& meeting, const std::string& prefix, int rank, int size,
                                int color, int key, Deadline deadline) {
  const auto key_of = [&](int r) { return fmt::format("{}/split/{}", prefix, r); };
  LOCKSTEP_RETURN_IF_ERROR(meeting.Put(key_of(rank), fmt::format("{} {}", color, key)));
  SplitGroup group;
  group.prefix = fmt::format("{}/color/{}", prefix, color);
  int before = 0;
  for (int r = 0; r < size; ++r) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, meeting.Get(key_of(r), deadline));
    int its_color = 0;
    int its_key = 0;
    if (!(std::istringstream(text) >> its_color >> its_key)) {
      return SystemFailed("split: rank {} left '{}' at the meeting", r, text);
    }
    if (its_color != color) continue;
    ++group.size;
    if (std::pair(its_key, r) < std::pair(key, rank)) ++before;
  }
  if (color >= 0) group.rank = before;
  return group;
}

}  // namespace lockstep::comm
