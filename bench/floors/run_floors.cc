#include "bench/floors/run_floors.h"

#include <cmath>

namespace lockstep::bench::floors {
namespace {

constexpr double kMeasureSeconds = 0.3;
// Cache-line round trips that differ by more than this are of two machines: ranks moved, or a
// virtual machine's processors did, or others used them.
constexpr double kPlacementChange = 1.5;

}  // namespace

RunFloors::RunFloors(std::vector<std::vector<int>> cpus_of_local_ranks,
                     std::optional<std::int64_t> largest_bytes)
    : cpus_(std::move(cpus_of_local_ranks)) {
  if (largest_bytes) reference_.emplace(cpus_, *largest_bytes);
}

HostFloors RunFloors::Measure() {
  HostFloors floors = MeasureFloors(cpus_, kMeasureSeconds);
  floors.crossing = Look();
  return floors;
}

Crossing RunFloors::Look() {
  const Crossing crossing = reference_ ? reference_->Measure() : Crossing{};
  least_trip_ns_ = std::fmin(least_trip_ns_, crossing.line_round_trip_ns);
  most_trip_ns_ = std::fmax(most_trip_ns_, crossing.line_round_trip_ns);
  return crossing;
}

std::vector<std::pair<std::string, double>> RunFloors::Figures(const HostFloors& before,
                                                               const HostFloors& after) const {
  std::vector<std::pair<std::string, double>> figures = FloorFigures(before);
  figures.emplace_back("line_round_trip_after_ns", after.line_round_trip_ns);
  figures.emplace_back("line_round_trip_least_ns", least_trip_ns_);
  figures.emplace_back("line_round_trip_most_ns", most_trip_ns_);
  // An unknown round trip compares as false: nothing is claimed of it.
  figures.emplace_back("placement_changed",
                       most_trip_ns_ / least_trip_ns_ > kPlacementChange ? 1 : 0);
  return figures;
}

}  // namespace lockstep::bench::floors
