// Where the faults of one rank take effect: the program passes its points through here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/status.h"
#include "stress/faults/fault_plan.h"
#include "stress/faults/rank_body.h"

namespace lockstep::stress::faults {

// The program's thread passes its points; another one may pass the one at which it aborts.
class FaultGate {
 public:
  // The faults of all ranks; those of `rank` fire here. `body` outlives the gate.
  FaultGate(const std::vector<PlannedFault>& faults, int rank, RankBody& body);

  // The program is at this point: what is due fires. The error of a fault that raises.
  Status Reach(FaultMoment::Kind kind, std::int64_t number = 0);
  struct Taken {
    std::size_t index;
    PlannedFault fault;
  };
  // The faults that the collective which is about to be called gets, each told once.
  std::vector<Taken> TakeForCall() { return Take(FaultSite::kCall); }
  std::vector<Taken> TakeForLibrary() { return Take(FaultSite::kLibrary); }
  // Of a taken fault that takes effect now.
  void Fired(const Taken& taken) { body_.Journal(taken.index); }
  Status Sleep(std::int64_t ns) { return body_.Sleep(ns); }
  // The program is over: whether it leaves without finalizing.
  bool NeverFinalize();

 private:
  struct Entry {
    std::size_t index;
    PlannedFault fault;
    bool due = false;  // its moment came; faults of collectives wait for the next one
    bool taken = false;
  };
  bool IsDue(const PlannedFault& fault, FaultMoment::Kind kind, std::int64_t number) const;
  std::vector<Taken> Take(FaultSite site);
  // Of the entries from `from` on the first that is due now and takes effect here; its end: none.
  std::size_t NextDue(std::size_t from, FaultMoment::Kind kind, std::int64_t number);

  std::mutex mutex_;  // of what is due and taken
  std::vector<Entry> entries_;
  RankBody& body_;
};

}  // namespace lockstep::stress::faults
