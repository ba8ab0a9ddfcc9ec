// The table of causes: their names, and what to do. PyTorch's users do something else here and
// there.
#include "watch/judge/finding.h"

#include <cstddef>

namespace lockstep::watch::judge {
namespace {

struct Row {
  const char* name;
  const char* remedy;
  const char* in_group = nullptr;  // where PyTorch's users would do something else
};

// In the order of Cause.
constexpr Row kRows[] = {
    {"deadlock", "Let one of them send before it receives, or post the receives first."},
    {"unsafe_order", "Make the collective before the message in both ranks, or after it in both."},
    {"tag_mismatch", "Give the send and its receive the same tag."},
    {"communicator_mismatch", "Use the same communicator in all ranks of the call."},
    {"call_mismatch", "All ranks must call the same collectives of a communicator in one order.",
     "Call the same collectives in one order in all ranks. Evaluate with ddp.module. Call none of "
     "your own inside join()."},
    {"missing_call", "All ranks of the communicator must make this call.",
     "All ranks must make this call. Give all ranks equally many inputs, or train inside join()."},
    {"root_mismatch", "Give all ranks the same root."},
    {"operator_mismatch", "Give all ranks the same operator."},
    {"datatype_mismatch", "Give both sides the same datatype and count.",
     "Give all ranks tensors of one size and type. Ranks with uneven inputs meet in other steps."},
    {"truncation", "Give the receive room for the whole message."},
    {"lost_message", "Receive the message, or do not send it."},
    {"lost_rank", "Look at what this rank printed last; the others wait for it."},
    {"stopped_rank", "Continue the process (SIGCONT), or end the launch."},
    {"aborted", "The program ended itself; look at what this rank printed last."},
    {"invalid_communicator", "Use a communicator that exists: not null, not freed."},
    {"invalid_datatype", "Use a datatype that exists and was committed."},
    {"invalid_operator", "Use an operator that exists."},
    {"invalid_root", "The root is a rank of the communicator: from 0 to its size less one."},
    {"invalid_rank", "The peer is a rank of the communicator: from 0 to its size less one."},
    {"invalid_tag", "A tag is 0 or more; only receives may take any."},
    {"invalid_count", "A count is 0 or more."},
    {"invalid_argument", "Look up what the call allows for this argument."},
    {"unfinished_request", "Wait for every request before MPI_Finalize."},
    {"never_started", "Call MPI_Start before you wait for a persistent request."},
    {"started_twice", "Wait for a persistent request before you start it again."},
    {"request_leak", "Free every persistent request before MPI_Finalize."},
    {"communicator_leak", "Call MPI_Comm_free before MPI_Finalize."},
    {"datatype_leak", "Call MPI_Type_free before MPI_Finalize."},
    {"operator_leak", "Call MPI_Op_free before MPI_Finalize."},
    {"group_leak", "Call MPI_Group_free before MPI_Finalize."},
    {"window_leak", "Call MPI_Win_free before MPI_Finalize."},
    {"file_leak", "Call MPI_File_close before MPI_Finalize."},
    {"message_race", "Name the source, or let the result not depend on the order."},
};
static_assert(sizeof kRows / sizeof *kRows == static_cast<std::size_t>(Cause::kMessageRace) + 1);

}  // namespace

const char* NameOf(Cause cause) { return kRows[static_cast<std::size_t>(cause)].name; }
const char* RemedyOf(Cause cause, bool in_group) {
  const Row& row = kRows[static_cast<std::size_t>(cause)];
  return in_group && row.in_group ? row.in_group : row.remedy;
}

}  // namespace lockstep::watch::judge
