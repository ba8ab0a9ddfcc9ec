#include "stress/run/aborted_generations.h"

#include <algorithm>
#include <utility>

namespace lockstep::stress::run {

std::shared_ptr<comm::Communicator> AbortedGenerations::GiveUp(int generation) {
  std::lock_guard lock(mutex_);
  newest_ = std::max(newest_, generation);
  return generation_ == generation ? communicator_ : nullptr;
}

bool AbortedGenerations::Contains(int generation) const {
  std::lock_guard lock(mutex_);
  return generation <= newest_;
}

bool AbortedGenerations::Begin(int generation, std::shared_ptr<comm::Communicator> communicator) {
  std::lock_guard lock(mutex_);
  if (generation <= newest_) return false;
  generation_ = generation;
  communicator_ = std::move(communicator);
  return true;
}

void AbortedGenerations::End() {
  std::lock_guard lock(mutex_);
  communicator_.reset();
}

}  // namespace lockstep::stress::run
