// The floors of a run: measured before and after its rounds, with looks at the processors between.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/floors/floors.h"
#include "bench/floors/reference.h"

namespace lockstep::bench::floors {

// While it measures and looks, the ranks must be asleep.
class RunFloors {
 public:
  // `largest_bytes`: of the messages; nothing: no data crosses between ranks, so none is looked at.
  RunFloors(std::vector<std::vector<int>> cpus_of_local_ranks,
            std::optional<std::int64_t> largest_bytes);

  HostFloors Measure();
  Crossing Look();

  // For the result file: FloorFigures of those before the rounds, and how a cache line's round trip
  // was after them, at its least and at its most.
  std::vector<std::pair<std::string, double>> Figures(const HostFloors& before,
                                                      const HostFloors& after) const;

 private:
  std::vector<std::vector<int>> cpus_;
  std::optional<Reference> reference_;
  double least_trip_ns_ = kUnknownFloor;  // of all looks
  double most_trip_ns_ = kUnknownFloor;
};

}  // namespace lockstep::bench::floors
