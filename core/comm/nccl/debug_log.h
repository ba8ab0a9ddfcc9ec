// What NCCL itself writes about its trouble.
#ifndef LOCKSTEP_CORE_COMM_NCCL_DEBUG_LOG_H_
#define LOCKSTEP_CORE_COMM_NCCL_DEBUG_LOG_H_

#include <string>

namespace lockstep::comm::nccl {

// Has NCCL write warnings to a new file, of this process alone, in `folder` (empty: $TMPDIR, or
// /tmp), unless the user's NCCL_DEBUG or NCCL_DEBUG_FILE say otherwise. Sets environment variables:
// called before the library is loaded, while no other thread reads them. The file's path; empty:
// NCCL writes to where we cannot follow (standard output).
const std::string& CaptureDebugLog(const std::string& folder);

// The last lines of that file on one line, with its path; empty when there is none.
std::string DebugLogEnd();

// Removes the file that CaptureDebugLog chose when NCCL had nothing to say but its version.
void DiscardQuietDebugLog();

}  // namespace lockstep::comm::nccl

#endif  // LOCKSTEP_CORE_COMM_NCCL_DEBUG_LOG_H_
