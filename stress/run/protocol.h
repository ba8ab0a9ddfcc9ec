// What the case runner and its workers say to each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/control/codec.h"

namespace lockstep::stress::run {

enum StressMessage : std::uint32_t {
  kCaseMessage = 1,  // to the worker: CaseOrder
  kFiredMessage,     // from the worker: the index of a fault, as decimal text, before it acts
  kAppliedMessage,   // to the worker: the fault that it waits for was applied; empty
  kReportMessage,    // from the worker: ProgramReport (stress/workloads/program_report.h)
  // Of a recovery. A generation is one communicator of all its members; the first is 0.
  kAbortMessage,       // to the worker: the generation to give up, as decimal text
  kAbortedMessage,     // from the worker: the same, when Abort() succeeded
  kRebuildMessage,     // to the worker: Membership
  kConnectingMessage,  // from the worker: the Membership it takes, before it connects
  kConnectedMessage,   // from the worker: generation and ticks, as decimal text
  kMachineMessage,     // from the worker, before any fault befalls it: WorkerFacts
};

// A rank's place in a generation.
struct Membership {
  int generation = 0;
  int rank = 0;
  int size = 0;
  std::int64_t first_iteration = 0;
  std::vector<int> members = {};         // by rank: the rank at the beginning
  std::vector<std::int64_t> fired = {};  // faults that must not befall it again

  static void Describe(auto& fields, auto& membership) {
    fields(membership.generation, membership.rank, membership.size, membership.first_iteration);
    fields(membership.members, membership.fired);
  }
};

// One case as a worker needs it; it derives everything else as the coordinator does.
struct CaseOrder {
  std::string origin;  // of the scenario
  std::string text;    // TOML
  int ranks = 0;
  std::string backend;
  std::uint64_t seed = 0;
  Membership membership = {};

  static void Describe(auto& fields, auto& order) {
    fields(order.origin, order.text, order.ranks, order.backend, order.seed, order.membership);
  }
};

// What the other side said by control::Encode.
template <typename T>
Result<T> Understand(const std::string& payload) {
  if (std::optional<T> message = control::Decode<T>(payload)) return *std::move(message);
  return SystemFailed("a message between a worker and its agent makes no sense");
}

}  // namespace lockstep::stress::run
