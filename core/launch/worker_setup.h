// What a rank's worker is started with beyond its agent's own environment.
#ifndef LOCKSTEP_CORE_LAUNCH_WORKER_SETUP_H_
#define LOCKSTEP_CORE_LAUNCH_WORKER_SETUP_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/launch/codec.h"

namespace lockstep {

// A shared library that this program carries in itself, so that a copied binary is complete.
struct PreloadLibrary {
  std::string_view name;
  std::string_view image;  // the ELF file; lives as long as the program
};

struct WorkerSetup {
  std::vector<std::string> environment;  // "NAME=VALUE", in place of the agent's
  std::vector<std::string> preload;      // names of FleetOptions::preloads, before LD_PRELOAD's
  // A small /dev/shm instead of the machine's, shared by the ranks of this host that ask for one.
  // Where that is not permitted the worker keeps the machine's; the fault that wants it says so.
  bool private_shm = false;

  bool empty() const { return environment.empty() && preload.empty() && !private_shm; }
};

void Put(Encoder& encoder, const WorkerSetup& setup);
bool Get(Decoder& decoder, WorkerSetup& setup);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_LAUNCH_WORKER_SETUP_H_
