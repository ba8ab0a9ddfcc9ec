// What whoever reads figures of NCCL must know of the way they came about.
#pragma once

#include <string>

#include "core/comm/nccl/choices.h"
#include "core/comm/nccl/nccl_communicator.h"

namespace lockstep::comm::nccl {

// One line, parts separated by "; "; empty: nothing. A library of tests, ranks that share a GPU,
// collectives that are replayed, and what is known of graphs with this version.
std::string RemarkOn(const NcclLibraryFacts& library, const NcclChoices& choices);

}  // namespace lockstep::comm::nccl
