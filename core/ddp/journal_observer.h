// Writes what the engine does into the journal of its communicator.
#pragma once

#include "core/comm/recorded.h"
#include "core/ddp/observer.h"

namespace lockstep::ddp {

// For an engine whose communicator is `recorded`: events say what each collective is for, and
// phases where the rank is. Hands everything on to `next`, if there is one.
class JournalObserver final : public EngineObserver {
 public:
  explicit JournalObserver(comm::RecordedCommunicator& recorded, EngineObserver* next = nullptr)
      : recorded_(recorded), next_(next) {}

  void OnCollective(const Operation& operation, const journal::Annotation& annotation) override {
    recorded_.AnnotateNext(annotation);
    if (next_ != nullptr) next_->OnCollective(operation, annotation);
  }
  void OnSection(const Section& section) override {
    if (next_ != nullptr) next_->OnSection(section);
  }
  void OnPhase(Phase phase) override {
    recorded_.EnterPhase(phase);
    if (next_ != nullptr) next_->OnPhase(phase);
  }

 private:
  comm::RecordedCommunicator& recorded_;
  EngineObserver* next_;
};

}  // namespace lockstep::ddp
