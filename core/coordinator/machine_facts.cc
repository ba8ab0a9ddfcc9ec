#include "core/coordinator/machine_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/comm/backends.h"

namespace lockstep::coordinator {
namespace {

void AddRanks(const std::vector<control::AgentInfo>& agents, environment::Facts& facts) {
  for (const control::AgentInfo& agent : agents) {
    const std::string group = fmt::format("ranks/{}", agent.rank);
    facts.emplace_back(group + "/host", agent.host);
    facts.emplace_back(group + "/boot_id", agent.boot_id);
    facts.emplace_back(group + "/cpus", fmt::format("{}", fmt::join(agent.cpus, ",")));
  }
}

void AddWorkerFacts(const std::string& worker_facts, environment::Facts& facts) {
  const auto json = nlohmann::ordered_json::parse(worker_facts, nullptr, false);
  if (!json.is_object()) return;  // no worker got so far
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) facts.emplace_back("software/" + key, value.get<std::string>());
  }
}

}  // namespace

environment::Facts MachineFacts(const std::vector<control::AgentInfo>& agents,
                                const control::LaunchContext& context,
                                const std::string& worker_facts) {
  environment::Facts facts = environment::HostFacts();
  AddRanks(agents, facts);
  facts.emplace_back("launch/launcher", context.launcher);
  facts.emplace_back("launch/ranks", fmt::format("{}", context.size));
  facts.emplace_back("software/compiler", "g++ " __VERSION__);
  // Whatever the backend, agents on several hosts meet over it.
  const Result<const comm::Backend*> mpi = comm::FindBackend("--backend", "mpi");
  facts.emplace_back("software/mpi", mpi.ok() ? (*mpi)->version() : "none");
  AddWorkerFacts(worker_facts, facts);
  for (const auto& variable : environment::VariableFacts()) facts.push_back(variable);
  return facts;
}

}  // namespace lockstep::coordinator
