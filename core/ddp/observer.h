// Who wants to know what the engine does, before it does it.
#pragma once

#include <cstdint>

#include "core/collective/collective.h"
#include "core/journal/event.h"
#include "core/journal/purpose.h"

namespace lockstep::ddp {

using collective::Collective;
using collective::Operation;
using journal::Phase;
using journal::Purpose;

// The parts of a program's run on one rank, as a trace shows them.
enum class SectionKind : std::uint8_t {
  kConstructor,
  kIteration,   // forward and backward; index: iteration of this rank over all epochs, from 0
  kEvaluation,  // index: the iteration after which it runs
  kJoinExit,
  kAfterLoop,  // what follows the loop outside join
};
struct Section {
  SectionKind kind = SectionKind::kConstructor;
  std::int64_t index = 0;

  bool operator==(const Section&) const = default;
};

// Called on the thread that drives the engine.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  // Right before the operation is enqueued; also of one that then fails or blocks for ever.
  virtual void OnCollective(const Operation& operation, const journal::Annotation& annotation) = 0;
  virtual void OnSection(const Section& section) = 0;
  virtual void OnPhase(Phase phase) = 0;
};

}  // namespace lockstep::ddp
