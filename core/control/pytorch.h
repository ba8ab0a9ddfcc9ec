// Ranks that PyTorch's variables describe: those of torchrun, or set by hand. Source:
// pytorch.org/docs/stable/distributed.html ("Environment variable initialization"), and
// torch/distributed/elastic/agent/server/local_elastic_agent.py.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/control/context.h"

namespace lockstep::control {

inline constexpr const char* kTorchrun = "torchrun";
inline constexpr const char* kByHand = "pytorch";  // who set the variables is not known

// RANK, WORLD_SIZE and MASTER_ADDR are there.
bool HasPyTorchVariables();
// … and torchrun set them, which did not start a launcher that is recognized too.
bool IsRankOfTorchrun();

// All ranks have one host if LOCAL_WORLD_SIZE says so. Where that is missing, they have if
// MASTER_ADDR is a loopback address: only one host can reach that.
Result<LaunchContext> FromPyTorch();

bool HasMasterAddress(const LaunchContext& context);  // torchrun's, or set by hand

// A port of MASTER_ADDR's host, beside the one where PyTorch's ranks meet: `above` MASTER_PORT, or
// below where that is no port.
Result<std::uint16_t> PortAboveMaster(int above);

}  // namespace lockstep::control
