// The coordinator's side of faults of links: tells relays whose a connection is, and what is to be
// wrong with which link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/coordinator/coordinator.h"
#include "stress/faults/fault_plan.h"

namespace lockstep::stress::links {

class LinkDirector {
 public:
  explicit LinkDirector(coordinator::Coordinator& coordinator) : coordinator_(coordinator) {}

  static bool Has(const std::vector<faults::PlannedFault>& faults);

  // Before the workers of a case start. `faults` outlives the case.
  void Begin(const std::vector<faults::PlannedFault>& faults, std::uint64_t seed);
  // `applied`: called when the fault is in force at all relays that know the link.
  void Apply(std::size_t fault, std::function<void()> applied);
  void Heal(std::size_t fault);
  // A report of a plugin. Returns the fault that has met traffic now, if one has.
  std::optional<std::size_t> OnReport(int rank, const std::string& report);
  // What was done for a fault of the network, or why nothing could be.
  std::string NoteOf(std::size_t fault) const;
  // Evidence of now: how many bytes came.
  void Look(const std::vector<verdict::RankEvidence>& evidence);
  // Whether more bytes came anywhere within `seconds`, and the time that a library may take to add
  // up what came, as far as it was shown.
  bool Moved(double seconds) const;

 private:
  struct Order {
    std::size_t fault;
    int relays;  // or wires, that have not applied it yet
    std::function<void()> applied;
    std::string note = {};
    bool impossible = false;  // at one of them: then it is nowhere
  };
  void ApplyToNetwork(int id);
  void OnAddresses(int rank, const std::string& report);
  void OnApplied(int rank, Order& order, int id, bool done, const std::string& note);
  // The rank whose worker listens there, or -1.
  int OwnerOf(const std::string& endpoint);

  coordinator::Coordinator& coordinator_;
  const std::vector<faults::PlannedFault>* faults_ = nullptr;
  std::uint64_t seed_ = 0;
  int next_rule_ = 1;  // never twice, so that a late report is of no other case's rule
  std::map<int, Order> orders_;
  // By rank, of its host; none: not told yet. Faults of the network wait for all of them.
  std::vector<std::optional<std::vector<std::string>>> addresses_;
  std::uint64_t received_ = 0;
  std::int64_t moved_ns_ = 0;
  double adding_seconds_ = 0;
};

}  // namespace lockstep::stress::links
