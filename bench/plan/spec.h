// What a user asked of the measuring, before it is expanded into cases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/comm/nccl/choices.h"

namespace lockstep::bench::plan {

// What is compared with its exact answer.
enum class CheckMode : std::uint8_t {
  kOff,
  // Every element is compared after every iteration. A rotating window of the outputs is poisoned
  // before each, and one of the inputs rewritten in the warm-up iterations, so that the caches stay
  // as a plain loop leaves them.
  kRotate,
  // Every element is also rewritten and poisoned before every iteration.
  kFull,
};

// The options of every kind of benchmark; those of one kind are its own.
struct BenchSpec {
  std::string backend = "mpi";
  comm::nccl::NcclChoices nccl;

  std::optional<std::int64_t> iterations;  // fixed count; else rounds until `precision`
  std::int64_t warmup = 5;                 // with fixed iterations; rounds choose their own
  double precision = 0.05;  // half width of the 95 % interval of the median, relative
  // How far the medians of sweeps differ by drift of the machine that is slower than a sweep and so
  // can't be seen in it: relative half width (95 %), added in quadrature to the stated interval.
  // 0.08 is what a shared virtual machine showed (scripts/check_coverage measures yours).
  double drift = 0.08;
  std::optional<double> time_budget_seconds;  // of a sweep; none: as much as it needs, see Rounds
  CheckMode check = CheckMode::kRotate;
  double deadline_seconds = 30;  // silence of a rank that is taken for a hang
  std::uint64_t seed = 1;
};

}  // namespace lockstep::bench::plan
