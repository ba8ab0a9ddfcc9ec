// Loading a sharded dataset without training: the `sharded_loading` workload.
#pragma once

#include <cstdint>

#include "core/ddp/training.h"

namespace lockstep::stress::scenario {

// Every key of the workload and its default.
struct LoadingProgram {
  enum class Between : std::uint8_t { kBarrier, kAllReduce, kNone };

  // Samples of the dataset. A list: ranks disagree about its length.
  ddp::PerRank<std::int64_t> samples = {{64}};
  std::int64_t batch = 8;
  std::int64_t epochs = 1;
  std::int64_t workers = 2;  // threads that decode; 0: the program itself
  double decode_passes = 4;  // work of decoding: passes over a sample's bytes
  ddp::PerRank<double> slow_down = {{1}};
  ddp::PerRank<std::int64_t> seed = {{0}};  // of the sampler
  bool shuffle = true;
  bool drop_last = false;
  bool set_epoch = true;
  bool weighted = false;  // images four times as often as texts (WeightedRandomSampler)
  Between between = Between::kBarrier;  // what ends an iteration
  ddp::AfterFinish after_finish = ddp::AfterFinish::kExit;
};

}  // namespace lockstep::stress::scenario
