// The variables of each launcher, whole, in part, and wrong.
#include "core/control/context.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/control/pytorch.h"

namespace lockstep::control {
namespace {

// Exactly these variables of all launchers.
Result<LaunchContext> Detect(const std::map<std::string, std::string>& variables) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK",
                           "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                           "OMPI_MCA_ess_base_jobid",
                           "PMIX_NAMESPACE",
                           "PMI_RANK",
                           "PMI_SIZE",
                           "MPI_LOCALRANKID",
                           "MPI_LOCALNRANKS",
                           "PMI_LOCAL_RANK",
                           "PMI_LOCAL_SIZE",
                           "SLURM_PROCID",
                           "SLURM_LOCALID",
                           "SLURM_NODEID",
                           "SLURM_STEP_NUM_TASKS",
                           "SLURM_STEP_TASKS_PER_NODE",
                           "SLURM_JOB_ID",
                           "SLURM_STEP_ID",
                           "PMIX_RANK",
                           "PMI_FD",
                           "FLUX_TASK_RANK",
                           "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_RESTART_COUNT",
                           "RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "PMIX_SERVER_URI2",
                           "PMIX_SERVER_URI3",
                           "PMIX_SERVER_URI4"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  return DetectLaunch();
}

void ExpectContext(const Result<LaunchContext>& found, const LaunchContext& expected) {
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->rank, expected.rank);
  EXPECT_EQ(found->size, expected.size);
  EXPECT_EQ(found->local_rank, expected.local_rank);
  EXPECT_EQ(found->local_size, expected.local_size);
  EXPECT_EQ(found->launcher, expected.launcher);
  EXPECT_EQ(found->job, expected.job);
}

TEST(Context, NoLauncher) { ExpectContext(Detect({}), {0, 1, 0, 1, "none", ""}); }

TEST(Context, OpenMpi) {
  ExpectContext(Detect({{"OMPI_COMM_WORLD_RANK", "5"},
                        {"OMPI_COMM_WORLD_SIZE", "8"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"PMIX_NAMESPACE", "1590165505"},
                        {"SLURM_PROCID", "0"},
                        {"SLURM_STEP_NUM_TASKS", "2"}}),
                {5, 8, 1, 4, "openmpi", "1590165505"});
}

TEST(Context, WhatTheLauncherSetIsKnown) {
  EXPECT_EQ(Detect({{"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_SIZE", "2"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                    {"PMIX_NAMESPACE", "7"},
                    {"SLURM_PROCID", "0"}})
                ->settings,
            (std::vector<std::string>{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
                                      "OMPI_COMM_WORLD_LOCAL_RANK=1",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=7"}));
}

TEST(Context, JobsOfOneNumberAreTwoWhereTheirServersAre) {
  std::map<std::string, std::string> variables = {
      {"OMPI_COMM_WORLD_RANK", "0"},
      {"OMPI_COMM_WORLD_SIZE", "2"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"PMIX_NAMESPACE", "1590165505"},
      {"PMIX_SERVER_URI2", "1590165504.0;tcp4://127.0.0.1:58943"}};
  EXPECT_EQ(Detect(variables)->job, "1590165505@58943");
  variables["PMIX_SERVER_URI4"] = "1590165504.0;tcp6://[::1]:60001";
  EXPECT_EQ(Detect(variables)->job, "1590165505@60001");
}

TEST(Context, Hydra) {
  ExpectContext(Detect({{"PMI_RANK", "1"},
                        {"PMI_SIZE", "2"},
                        {"MPI_LOCALRANKID", "1"},
                        {"MPI_LOCALNRANKS", "2"}}),
                {1, 2, 1, 2, "pmi", ""});
  EXPECT_FALSE(Detect({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).ok());
}

// Ranks of one proxy have one job, whatever process stands between; those of another have another.
TEST(Context, HydraNamesTheJobByItsProxy) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  ExpectContext(Detect({{"PMI_RANK", "1"},
                        {"PMI_SIZE", "2"},
                        {"PMI_FD", std::to_string(pair[0])},
                        {"MPI_LOCALRANKID", "1"},
                        {"MPI_LOCALNRANKS", "2"}}),
                {1, 2, 1, 2, "pmi", "hydra-" + std::to_string(getpid())});
  close(pair[0]);
  close(pair[1]);
}

TEST(Context, UnknownLaunchersAreNamed) {
  for (const char* variable : {"FLUX_TASK_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const Result<LaunchContext> found = Detect({{variable, "3"}});
    ASSERT_FALSE(found.ok()) << variable;
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidInput);
    EXPECT_NE(found.status().message().find(variable + std::string("='3'")), std::string::npos);
    EXPECT_EQ(found.status().message().find('\n'), std::string::npos);
  }
}

TEST(Context, Slurm) {
  std::map<std::string, std::string> variables = {{"SLURM_PROCID", "5"},
                                                  {"SLURM_LOCALID", "1"},
                                                  {"SLURM_NODEID", "2"},
                                                  {"SLURM_STEP_NUM_TASKS", "8"},
                                                  {"SLURM_JOB_ID", "17"},
                                                  {"SLURM_STEP_ID", "0"},
                                                  {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1(x2)"}};
  ExpectContext(Detect(variables), {5, 8, 1, 2, "slurm", "17.0"});
  variables["SLURM_NODEID"] = "4";
  variables["SLURM_LOCALID"] = "0";
  ExpectContext(Detect(variables), {5, 8, 0, 1, "slurm", "17.0"});
  variables["SLURM_NODEID"] = "5";
  EXPECT_FALSE(Detect(variables).ok());
  variables["SLURM_STEP_TASKS_PER_NODE"] = "2(x";
  EXPECT_FALSE(Detect(variables).ok());
  // A batch script that starts the program without srun.
  ExpectContext(Detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), {0, 1, 0, 1, "none", ""});
  // Likewise in the shell of salloc, which is a step of its own.
  for (const char* step : {"4294967290", "4294967291"}) {
    ExpectContext(Detect({{"SLURM_PROCID", "0"},
                          {"SLURM_STEP_ID", step},
                          {"SLURM_STEP_NUM_TASKS", "1"},
                          {"SLURM_STEP_TASKS_PER_NODE", "1"}}),
                  {0, 1, 0, 1, "none", ""});
  }
}

using Variables = std::map<std::string, std::string>;

const Variables kTorchrunsOwn = {{"TORCHELASTIC_RUN_ID", "none"},
                                 {"TORCHELASTIC_RESTART_COUNT", "1"},
                                 {"RANK", "5"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "4"},
                                 {"MASTER_ADDR", "node1"},
                                 {"MASTER_PORT", "29501"}};

TEST(Context, Torchrun) {
  ExpectContext(Detect(kTorchrunsOwn), {5, 8, 1, 4, "torchrun", "node1:29501.1"});
  EXPECT_EQ(*PortAboveMaster(2000), 31501);
  setenv("MASTER_PORT", "64000", 1);
  EXPECT_EQ(*PortAboveMaster(2000), 62000) << "above is no port";
}

TEST(Context, PyTorchsVariablesByHand) {
  Variables variables = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  ExpectContext(Detect(variables), {1, 2, 1, 2, "pytorch", "127.0.0.1:29500."});
  EXPECT_TRUE(Detect(variables)->single_host());
  variables["MASTER_ADDR"] = "node1";
  ExpectContext(Detect(variables), {1, 2, 0, 1, "pytorch", "node1:29500."});
  EXPECT_FALSE(Detect(variables)->single_host()) << "nobody knows: they meet over the network";
  variables["LOCAL_RANK"] = "1";
  EXPECT_EQ(Detect(variables)->local_rank, 1);
  variables.erase("MASTER_ADDR");
  EXPECT_EQ(Detect(variables)->launcher, "none") << "a shell may have a RANK";
}

TEST(Context, WhatAShellHasOfPyTorchDoesNotMisleadOtherLaunchers) {
  const Variables mpirun = {{"OMPI_COMM_WORLD_RANK", "0"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "7"}};
  Variables all = kTorchrunsOwn;
  all.insert(mpirun.begin(), mpirun.end());
  ExpectContext(Detect(all), {0, 2, 0, 2, "openmpi", "7"});
  all.erase("TORCHELASTIC_RUN_ID");
  ExpectContext(Detect(all), {0, 2, 0, 2, "openmpi", "7"});
}

TEST(Context, NonsenseOfPyTorch) {
  const std::multimap<std::string, std::string> wrong = {{"RANK", "8"},
                                                         {"RANK", "-1"},
                                                         {"WORLD_SIZE", "0"},
                                                         {"LOCAL_RANK", "4"},
                                                         {"LOCAL_WORLD_SIZE", "9"},
                                                         {"WORLD_SIZE", "two"}};
  for (const auto& [name, bad] : wrong) {
    Variables variables = kTorchrunsOwn;
    variables[name] = bad;
    const Result<LaunchContext> found = Detect(variables);
    ASSERT_FALSE(found.ok()) << name << "=" << bad;
    EXPECT_NE(found.status().message().find(name + "='" + bad + "'"), std::string::npos);
  }
}

TEST(Context, Nonsense) {
  const std::map<std::string, std::string> good = {{"OMPI_COMM_WORLD_RANK", "0"},
                                                   {"OMPI_COMM_WORLD_SIZE", "2"},
                                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  ASSERT_TRUE(Detect(good).ok());
  for (const auto& [name, value] : good) {
    for (const char* bad : {"", "-1", "x", "2x", "3", "99999999999", " 1"}) {
      auto variables = good;
      variables[name] = bad;
      if (name == "OMPI_COMM_WORLD_SIZE" && std::string(bad) == "3") continue;
      const Result<LaunchContext> found = Detect(variables);
      ASSERT_FALSE(found.ok()) << name << "=" << bad;
      EXPECT_EQ(found.status().code(), StatusCode::kInvalidInput);
    }
  }
}

}  // namespace
}  // namespace lockstep::control
