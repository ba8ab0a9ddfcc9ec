// NCCL as the backend of the programs: which library, which device, what they say of themselves.
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/comm/nccl/choices.h"
#include "core/comm/nccl/nccl_communicator.h"
#include "core/comm/nccl/platform.h"

namespace lockstep::comm::nccl {

// The user's choices (core/comm/nccl/choices.h) as options.
NcclOptions NcclOptionsFromEnvironment();

// For the process that is number `local_rank` on this host; with `host_access` the host can read
// and write the device's buffers, whose pages then move. kEnvironment in one line: no library, no
// CUDA in this build, no driver, no device, or more ranks than devices. Where ranks share a GPU it
// sets the variables that let NCCL do so (unless the user did): nothing may have called NCCL yet.
Result<NcclPlatform> OpenNccl(int local_rank, bool host_access);

// NcclCapabilities, and what the chosen library is too old for; it is opened where that matters.
const Capabilities& NcclBackendCapabilities();

// "2.28.9 (/usr/lib/x86_64-linux-gnu/libnccl.so.2)", or why it is unknown.
std::string NcclVersion();

// What whoever reads figures of NCCL must know of the way they came about. One line, parts
// separated by "; "; empty: nothing. A library of tests, ranks that share a GPU, collectives that
// are replayed, and what is known of graphs with this version.
std::string RemarkOn(const NcclLibraryFacts& library, const NcclChoices& choices);

}  // namespace lockstep::comm::nccl
