// What is measured of sharded loading. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/plan/plan.h"
#include "core/base/named_members.h"
#include "core/base/status.h"

namespace lockstep::bench::loading {

// The next batch of a sharded dataset on every rank, then a barrier in place of the training step.
struct ShardedLoad {
  static constexpr char kName[] = "sharded_load";
  std::string dataset;         // a file; "": each rank makes one for itself, the same everywhere
  std::int64_t samples = 512;  // of that
  std::int64_t batch = 16;
  int workers = 2;
  double decode_passes = 4;  // over the bytes of a sample
  bool set_epoch = true;
  bool drop_last = false;
  bool weighted = false;  // images are drawn four times as often as texts
  double slow_down = 1;   // of decoding on `slow_rank`
  int slow_rank = 0;

  bool operator==(const ShardedLoad&) const = default;
  template <typename Fields, typename S>
  static void Describe(Fields& fields, S& step) {
    LOCKSTEP_FIELDS(fields, step, dataset, samples, batch, workers, decode_passes, set_epoch,
                    drop_last, weighted, slow_down, slow_rank);
  }
};

// Every combination of the lists is a case. The first value of a list is what the others are
// compared with.
struct Axes {
  ShardedLoad common;  // what is no axis
  std::vector<bool> set_epoch = {true};
  std::vector<bool> drop_last = {false};
  std::vector<bool> weighted = {false};
  std::vector<double> slow_downs = {1};
};

Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size);

}  // namespace lockstep::bench::loading
