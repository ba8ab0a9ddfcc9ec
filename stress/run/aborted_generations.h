// Which generations a worker was told to give up: one thread hears of it, another one connects.
#pragma once

#include <memory>
#include <mutex>

#include "core/comm/communicator.h"

namespace lockstep::stress::run {

// An order may come before its generation has begun to connect, and still holds then. Safe for use
// by several threads.
class AbortedGenerations {
 public:
  // Gives up `generation` and all before it. Returns its communicator, which the caller aborts;
  // null: it has none yet.
  std::shared_ptr<comm::Communicator> GiveUp(int generation);
  bool Contains(int generation) const;
  // From now on `generation` works with `communicator`. False: it was given up before.
  bool Begin(int generation, std::shared_ptr<comm::Communicator> communicator);
  // Nobody aborts the communicator any more.
  void End();

 private:
  mutable std::mutex mutex_;
  int newest_ = -1;  // all up to it are given up
  int generation_ = -1;
  std::shared_ptr<comm::Communicator> communicator_;
};

}  // namespace lockstep::stress::run
