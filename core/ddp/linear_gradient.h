// What training of linear_1_1 must end with. Pure.
#pragma once

#include <optional>

#include "core/ddp/training.h"

namespace lockstep::ddp {

struct LinearGradient {
  float value = 0;
  bool exact = true;  // in whatever order the ranks' terms are added
};

// What a rank of linear_1_1 ends with, by arithmetic in one process, in DDP's order and rounding.
// Nothing where the program is not plain: with no_sync, evaluation, zero_grad, epochs or a hook,
// join_throw, or uneven inputs without join.
std::optional<LinearGradient> ExpectedLinear(const TrainingProgram& program, int rank, int ranks);

}  // namespace lockstep::ddp
