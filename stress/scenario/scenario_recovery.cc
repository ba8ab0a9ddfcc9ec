// The [recovery] table, and what goes with it only: a fault at "rebuild", an expected recovery, a
// workload that can begin anew.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/units.h"
#include "stress/scenario/scenario_tables.h"

namespace lockstep::stress::scenario {
namespace {

constexpr std::string_view kModes[] = {"shrink", "restart"};
constexpr std::string_view kResumable[] = {"ddp_training", "all_reduce_loop", "broadcast_loop"};
constexpr std::string_view kFaultsOfRecovery[] = {"hung_abort", "wrong_membership"};

template <typename Names>
bool IsAmong(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string WorkloadKind(TomlFields& root) {
  const toml::table* workload = root.FindTable("workload");
  return workload == nullptr ? "" : (*workload)["kind"].value_or(std::string());
}

// What only makes sense beside a [recovery] table.
void RejectLeftovers(TomlFields& root, const Scenario& scenario) {
  for (const FaultSpec& fault : scenario.faults) {
    const bool alone = IsAmong(kFaultsOfRecovery, fault.kind) || fault.at == "rebuild";
    if (!alone) continue;
    root.mistakes().Add(fault.line, "fault", "{} at {} needs a recovery; add a [recovery] table",
                        fault.kind, fault.at);
  }
  for (const auto& [backend, expectation] : scenario.expect) {
    if (expectation.recovery.empty()) continue;
    root.Wrong("expect." + backend,
               "expects a recovery, and there is none; add a [recovery] table");
  }
}

void ReadDeadline(TomlFields& fields, const char* key, double& seconds) {
  std::string text;
  if (!fields.Read(key, text)) return;
  const Result<double> read = ParseSeconds(key, text);
  if (read.ok() && *read > 0) {
    seconds = *read;
  } else {
    fields.Wrong(key, "'{}' is no time; write as in \"2s\"", text);
  }
}

}  // namespace

void ReadRecovery(TomlFields& root, Scenario& scenario) {
  const toml::table* table = root.FindTable("recovery");
  if (table == nullptr) return RejectLeftovers(root, scenario);
  TomlFields fields(*table, "recovery", root.mistakes());
  RecoveryPlan plan;
  if (!fields.Has("mode")) fields.Wrong("mode", "missing; write mode = \"shrink\" or \"restart\"");
  fields.ReadEnum("mode", kModes, plan.mode);
  ReadDeadline(fields, "abort_deadline", plan.abort_deadline_seconds);
  ReadDeadline(fields, "connect_deadline", plan.connect_deadline_seconds);
  const std::string kind = WorkloadKind(root);
  if (!kind.empty() && !IsAmong(kResumable, kind)) {
    fields.Wrong("mode", "{} cannot go on from an iteration; choose one of {}", kind,
                 fmt::join(kResumable, ", "));
  }
  if (scenario.ranks < 2) fields.Wrong("mode", "one rank has no survivors; use two ranks or more");
  fields.RejectTheRest();
  scenario.recovery = plan;
}

}  // namespace lockstep::stress::scenario
