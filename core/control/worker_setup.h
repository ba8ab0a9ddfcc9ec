// What a rank's worker is started with beyond its agent's own environment.
#ifndef LOCKSTEP_CORE_CONTROL_WORKER_SETUP_H_
#define LOCKSTEP_CORE_CONTROL_WORKER_SETUP_H_

#include <string>
#include <vector>

#include "core/control/codec.h"

namespace lockstep::control {

struct WorkerSetup {
  std::vector<std::string> environment;  // "NAME=VALUE", in place of the agent's
  // Names the memory of an offset, for a program that adds it to its time of day.
  bool movable_clock = false;
  // A small /dev/shm instead of the machine's, shared by the ranks of this host that ask for one.
  // Where that is not permitted the worker keeps the machine's; the fault that wants it says so.
  bool private_shm = false;

  bool empty() const { return environment.empty() && !movable_clock && !private_shm; }
};

void Put(Encoder& encoder, const WorkerSetup& setup);
bool Get(Decoder& decoder, WorkerSetup& setup);

}  // namespace lockstep::control

#endif  // LOCKSTEP_CORE_CONTROL_WORKER_SETUP_H_
