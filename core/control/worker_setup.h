// What a rank's worker is started with beyond its agent's own environment.
#pragma once

#include <string>
#include <vector>

namespace lockstep::control {

struct WorkerSetup {
  std::vector<std::string> environment;  // "NAME=VALUE", in place of the agent's
  // Names the memory of an offset, for a program that adds it to its time of day.
  bool movable_clock = false;
  // A small /dev/shm instead of the machine's, shared by the ranks of this host that ask for one.
  // Where that is not permitted the worker keeps the machine's; the fault that wants it says so.
  bool private_shm = false;

  bool empty() const { return environment.empty() && !movable_clock && !private_shm; }
  static void Describe(auto& fields, auto& setup) {
    fields(setup.environment, setup.movable_clock, setup.private_shm);
  }
};

}  // namespace lockstep::control
