// What NCCL itself writes about its trouble.
#pragma once

#include <string>

namespace lockstep::comm::nccl {

// Has NCCL write warnings to a file without a name, unless the user's NCCL_DEBUG or NCCL_DEBUG_FILE
// say otherwise: that of journal::kWorkerLogVariable, or one of this process alone. Sets
// environment variables: called before the library is loaded, while no other thread reads them. The
// path to follow; empty: NCCL writes to where we cannot follow (standard output).
const std::string& CaptureDebugLog();

// The last lines of that file on one line, with the path of a user's file; empty when there is
// none.
std::string DebugLogEnd();

// With a blank for each control character, and none at the end.
std::string WithoutControls(std::string text);

}  // namespace lockstep::comm::nccl
