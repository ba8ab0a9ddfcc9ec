// Starts from the facts of a machine on which no rule holds, and breaks one fact at a time. Exactly
// the expected rule must then hold.
#include "core/environment/rules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::environment {
namespace {

// A machine on which no rule of ours holds.
Facts Healthy() {
  return {{"limits/shm_bytes", "8589934592"},
          {"limits/shm_available_bytes", "8589934592"},
          {"limits/memlock_bytes", "unlimited"},
          {"limits/open_files", "1048576"},
          {"host/architecture", "x86_64"},
          {"host/cpus_usable", "96"},
          {"host/cpu_governor", "performance"},
          {"host/container", "none"},
          {"network/host_name_resolves_to", "10.0.0.7"},
          {"network/interfaces", "2"},
          {"network/container_interfaces", "0"},
          {"network/infiniband_active_ports", "8"},
          {"topology/pci_gpus", "8"},
          {"topology/gpu_files", "2"},
          {"topology/pci_bridges_redirecting_peers", "0"},
          {"topology/iommu_units", "0"},
          {"topology/iommu_pass_through", "no"},
          {"gpu/count", "2"},
          {"gpu/driver", "580.65.06"},
          {"gpu/fabric_manager", "yes"},
          {"gpu/peer_memory_module", "yes"},
          {"gpu/0/uncorrected_ecc_errors", "0"},
          {"gpu/1/uncorrected_ecc_errors", "0"},
          {"gpu/1/throttling", "none"},
          {"gpu/1/pcie_lanes_missing", "0"},
          {"gpu/1/compute_capability", "9.0"},
          {"gpu/1/compute_mode", "default"},
          {"gpu/1/mig", "off"},
          {"gpu/pair/0-1", "one PCIe switch, peer access yes"},
          {"nccl/libraries", "1"},
          {"nccl/0/version", "2.28.9"},
          {"nccl/0/built_with_cuda", "13.0"},
          {"software/cuda_toolkit", "13.0"}};
}

Facts With(const std::string& path, const std::string& value) {
  Facts facts = Healthy();
  std::erase_if(facts, [&](const auto& fact) { return fact.first == path; });
  facts.emplace_back(path, value);
  return facts;
}

std::vector<std::string> Held(const Facts& facts) {
  std::vector<std::string> rules;
  for (const Ailment& ailment : CheckUp(facts, BuiltInRules()).ailments) {
    rules.push_back(ailment.rule);
  }
  return rules;
}

TEST(RulesTest, AHealthyMachineIsHealthyAndAllOfItIsChecked) {
  const Checkup checkup = CheckUp(Healthy(), BuiltInRules());
  EXPECT_TRUE(checkup.ailments.empty()) << checkup.ailments.front().message;
  EXPECT_TRUE(checkup.unchecked.empty()) << checkup.unchecked.front();
  EXPECT_EQ(checkup.checked, BuiltInRules().size());
}

TEST(RulesTest, EveryFactThatIsWrongIsFoundAndNothingElse) {
  const std::pair<std::pair<const char*, const char*>, const char*> kIll[] = {
      {{"limits/shm_bytes", "67108864"}, "small_shm"},
      {{"limits/shm_available_bytes", "1000"}, "full_shm"},
      {{"limits/memlock_bytes", "65536"}, "low_memlock"},
      {{"limits/open_files", "1024"}, "few_open_files"},
      {{"network/host_name_resolves_to", "fails: Name or service not known"}, "host_name"},
      {{"network/host_name_resolves_to", "127.0.1.1"}, "host_name_loopback"},
      {{"network/container_interfaces", "1"}, "container_interfaces"},
      {{"variables/NCCL_IGNORE_NET_MISMATCH", "1"}, "ignored_net_mismatch"},
      {{"topology/pci_bridges_redirecting_peers", "4"}, "acs_redirects"},
      {{"topology/iommu_units", "2"}, "iommu"},
      {{"gpu/fabric_manager", "no"}, "fabric_manager"},
      {{"gpu/lost/1", "'GPU is lost' (15)"}, "gpu_lost"},
      {{"topology/gpu_files", "3"}, "gpu_missing"},
      {{"gpu/none", "no GPU driver: NVML says 'Driver/library version mismatch' (18)"},
       "driver_fails"},
      {{"nccl/libraries", "2"}, "several_nccl"},
      {{"nccl/0/version", "2.20.5"}, "nccl_graphs_stall"},
      {{"nccl/0/version", "2.26.2"}, "nccl_graphs_race"},
      {{"host/architecture", "aarch64"}, "nccl_hangs_on_arm"},
      {{"variables/CUDA_LAUNCH_BLOCKING", "1"}, "launch_blocking"},
      {{"variables/CUDA_VISIBLE_DEVICES", "0"}, "one_visible_gpu_for_all"},
      {{"gpu/1/uncorrected_ecc_errors", "7"}, "uncorrected_ecc"},
      {{"gpu/1/throttling", "power cap"}, "throttling"},
      {{"gpu/1/pcie_lanes_missing", "8"}, "missing_lanes"},
      {{"gpu/1/mig", "on"}, "mig"},
      {{"gpu/1/compute_capability", "7.0"}, "gpu_too_old_for_cuda_13"},
      {{"gpu/1/compute_mode", "prohibited"}, "prohibited"},
      {{"gpu/pair/0-1", "one NUMA node, peer access no"}, "no_peer_access"},
      {{"gpu/peer_memory_module", "no"}, "no_peer_memory_module"},
      {{"host/cpus_usable", "1"}, "fewer_processors"},
      {{"host/cpu_governor", "powersave"}, "governor"}};
  for (const auto& [fact, rule] : kIll) {
    EXPECT_EQ(Held(With(fact.first, fact.second)), std::vector<std::string>{rule}) << fact.first;
  }
}

TEST(RulesTest, InterfacesThatAVariableNamesInVainAreNamed) {
  const Checkup lost =
      CheckUp(With("network/no_interface/GLOO_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME=absent0"),
              BuiltInRules());
  ASSERT_EQ(lost.ailments.size(), 1u);
  EXPECT_EQ(lost.ailments[0].level, Level::kProblem);
  EXPECT_EQ(lost.ailments[0].message.find("GLOO_SOCKET_IFNAME=absent0: this host has no"), 0u);
  EXPECT_EQ(Held(With("network/some_interfaces_absent/x", "a of x=a,lo")),
            std::vector<std::string>{"some_interfaces_absent"});
}

TEST(RulesTest, AContainerWithoutGpusIsToldFromOneWithoutADriver) {
  Facts facts = With("topology/gpu_files", "0");
  facts.emplace_back("gpu/none", "no GPU driver: libnvidia-ml.so.1 can't be opened");
  EXPECT_EQ(Held(facts), std::vector<std::string>{"gpus_out_of_reach"});
  EXPECT_EQ(Held(With("topology/gpu_files", "1")), std::vector<std::string>{});
}

TEST(RulesTest, VersionsOfNcclThatHangAreNamed) {
  using Rules = std::vector<std::string>;
  const auto held = [](const char* version) { return Held(With("nccl/0/version", version)); };
  EXPECT_EQ(held("2.18.5"), (Rules{"nccl_abort_hangs", "nccl_graphs_stall"}));
  EXPECT_EQ(held("2.28.5"), (Rules{"nccl_recovery_inside_a_process", "nccl_hangs_at_scale"}));
  for (const char* good : {"2.27.3", "2.28.9", "2.29.3", "2.30.7", "2.31.2"}) {
    EXPECT_EQ(held(good), Rules{}) << good;
  }
  const auto on_blackwell = [](const char* version) {
    Facts facts = With("gpu/1/compute_capability", "10.3");
    for (auto& [path, value] : facts) {
      if (path == "nccl/0/version") value = version;
    }
    return Held(facts);
  };
  EXPECT_EQ(on_blackwell("2.30.7"), Rules{"nccl_hangs_on_blackwell"});
  EXPECT_EQ(on_blackwell("2.29.7"), Rules{});
  Facts facts = With("nccl/0/version", "2.16.5");
  facts.emplace_back("variables/CUDA_LAUNCH_BLOCKING", "1");
  EXPECT_EQ(Held(facts).front(), "nccl_launch_blocking_hangs");
  facts = With("host/architecture", "aarch64");
  std::erase_if(facts, [](const auto& fact) { return fact.first == "nccl/0/version"; });
  facts.emplace_back("nccl/0/version", "2.29.3");
  EXPECT_EQ(Held(facts), Rules{});
}

TEST(RulesTest, AnOldDriverIsNamedForToolkitAndLibrary) {
  EXPECT_EQ(Held(With("gpu/driver", "535.104.05")),
            (std::vector<std::string>{"driver_for_cuda_13", "driver_for_nccl_cuda_13"}));
  EXPECT_EQ(Held(With("gpu/driver", "580.65.06")), std::vector<std::string>{});
  EXPECT_EQ(Held(With("gpu/driver", "470.1")).size(), 4u);  // too old for CUDA 12 as well
}

TEST(RulesTest, AnOldDriverIsNamedForTheRuntimeOfAPackage) {
  const auto held = [](const char* runtime, const char* driver) {
    Facts facts = With("gpu/driver", driver);
    facts.emplace_back("software/cuda_runtime1", runtime);
    std::vector<std::string> rules = Held(facts);
    std::erase_if(
        rules, [](const std::string& rule) { return rule.find("runtime") == std::string::npos; });
    return rules;
  };
  using Rules = std::vector<std::string>;
  constexpr const char* kThirteen = "/venv/lib/nvidia/cu13/lib/libcudart.so.13";
  constexpr const char* kTwelve = "/venv/lib/nvidia/cuda_runtime/lib/libcudart.so.12";
  EXPECT_EQ(held(kThirteen, "570.86.10"), Rules{"driver_for_runtime_13"});
  EXPECT_EQ(held(kThirteen, "580.65.06"), Rules{});
  EXPECT_EQ(held(kTwelve, "525.60.13"), Rules{});
  EXPECT_EQ(held(kTwelve, "470.1"), Rules{"driver_for_runtime_12"});
}

TEST(RulesTest, WhatIsUnknownIsNeitherGoodNorBad) {
  const Checkup checkup =
      CheckUp(With("topology/pci_bridges_redirecting_peers", "unknown: only root can read it"),
              BuiltInRules());
  EXPECT_TRUE(checkup.ailments.empty());
  EXPECT_EQ(checkup.unchecked, std::vector<std::string>{"acs_redirects"});
}

TEST(RulesTest, MessagesNameTheFactAndRemedies) {
  const Checkup checkup = CheckUp(With("gpu/1/uncorrected_ecc_errors", "7"), BuiltInRules());
  ASSERT_EQ(checkup.ailments.size(), 1u);
  EXPECT_EQ(checkup.ailments[0].message.find("gpu/1/uncorrected_ecc_errors is 7"), 0u);
  EXPECT_FALSE(checkup.ailments[0].remedy.empty());
  for (const Rule& rule : BuiltInRules()) {
    EXPECT_FALSE(rule.remedy.empty()) << rule.id;
    EXPECT_FALSE(rule.source.empty()) << rule.id;
  }
}

TEST(RulesTest, VersionsAreNumbers) {
  EXPECT_EQ(CompareVersions("2.28.9", "2.28.10"), -1);
  EXPECT_EQ(CompareVersions("2.28", "2.28.0"), 0);
  EXPECT_EQ(CompareVersions("580.65.06", "580.65.6"), 0);
  EXPECT_EQ(CompareVersions("10", "9.9"), 1);
}

TEST(RulesTest, MistakesInRulesAreOneLine) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"[[rule]]\nid = \"a\"\nwhen = [\"x is 3\"]\nmessage = \"m\"\nremedy = \"r\"\n",
       "'x is 3' is no condition"},
      {"[[rule]]\nid = \"a\"\nmessage = \"m\"\nremedy = \"r\"\n", "when"},
      {"[[rule]]\nid = \"a\"\nwhen = [\"x present\"]\nmessage = \"m\"\n", "remedy"},
      {"[[rule]]\nid = \"a\"\nwhen = [\"x present\"]\nmessage = \"m\"\nremedy = \"r\"\n"
       "level = \"awful\"\n",
       "awful"},
      {"[[rule]]\nid = 3\nwhen = [\"x present\"]\nmessage = \"m\"\nremedy = \"r\"\n", "id"},
      {"rule = 3\n", "[[rule]]"},
      {"[[rule]]\nid = \n", "own.toml:2"}};
  for (const auto& [text, part] : kWrong) {
    const auto rules = ParseRules(text, "own.toml");
    ASSERT_FALSE(rules.ok()) << text;
    EXPECT_NE(rules.status().message().find(part), std::string::npos) << rules.status().message();
    EXPECT_EQ(rules.status().message().find("own.toml"), 0u);
    EXPECT_EQ(rules.status().message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::environment
