// What is measured of a ring of messages. Pure.
#pragma once

#include <vector>

#include "bench/plan/plan.h"
#include "bench/plan/sizes.h"
#include "core/base/status.h"
#include "core/collective/data_type.h"

namespace lockstep::bench::sendrecv {

// Every size of every type is a case.
struct Axes {
  plan::Sizes sizes = {};
  std::vector<collective::DataType> types = {collective::DataType::kF32};
};

// A case holds the receive, whose data are compared. Its peer is -1, because it differs from rank
// to rank.
Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size);

// Whom a rank sends to, and whom it receives from.
constexpr int RightOf(int rank, int world_size) { return (rank + 1) % world_size; }
constexpr int LeftOf(int rank, int world_size) { return (rank + world_size - 1) % world_size; }

}  // namespace lockstep::bench::sendrecv
