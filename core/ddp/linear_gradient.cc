#include "core/ddp/linear_gradient.h"

#include <bit>
#include <cstdint>
#include <limits>

namespace lockstep::ddp {
namespace {

bool IsPlain(const TrainingProgram& program) {
  return program.model == "linear_1_1" && program.no_sync_iterations.empty() &&
         !program.evaluation && !program.zero_grad && program.epochs == 1 &&
         program.comm_hook == CommHook::kNone && !program.join_throw;
}

}  // namespace

// In each iteration the ranks that still train have the same gradient: what it was and
// `linear_rows` more, divided, then summed over them (those that joined add zeros). Equal terms
// give one sum in any order: up to three of them, or where no part of the sum is rounded.
std::optional<LinearGradient> ExpectedLinear(const TrainingProgram& program, int rank, int ranks) {
  if (!IsPlain(program)) return std::nullopt;
  constexpr float kWhole = 1 << std::numeric_limits<float>::digits;  // up to this one: all
  LinearGradient gradient;
  bool whole = true;  // a term has units of 1 / active, and so has each part of the sum
  for (std::int64_t i = program.first_iteration; i < InputsOf(program, rank, ranks); ++i) {
    int active = 0;
    for (int r = 0; r < ranks; ++r) active += i < InputsOf(program, r, ranks) ? 1 : 0;
    if (active < ranks && !program.join) return std::nullopt;
    const int divisor = program.divide_by_initial_world_size ? ranks : active;
    const float sum = gradient.value + static_cast<float>(program.linear_rows);
    const float part = sum * static_cast<float>(1.0 / divisor);
    gradient.value = 0;
    for (int r = 0; r < active; ++r) gradient.value += part;
    whole = whole && active == divisor && std::has_single_bit(static_cast<unsigned>(active)) &&
            sum * static_cast<float>(active) <= kWhole;
    gradient.exact = gradient.exact && (active <= 3 || whole);
  }
  return gradient;
}

}  // namespace lockstep::ddp
