// The table of all subcommands. main, --help and docs/options.md are made from it.
#include "cli/subcommand.h"

namespace lockstep::cli {

// Each in the file of its name.
AddOptions AddBuckets, AddCompare, AddDiagnose, AddDoctor, AddExport, AddMakeDataset, AddReport,
    AddSampler, AddScore, AddShow, AddTrend;
// Null in a program without these files.
[[gnu::weak]] AddOptions AddRun, AddStatus, AddStress, AddTraceDdp, AddWatch;
void SeparateSides(std::vector<std::string>& arguments);  // compare.cc

namespace {

constexpr Script kMatrix{.name = "compat_matrix", .runs_programs = true};
constexpr Script kNightly{.name = "nightly", .runs_programs = true};
constexpr Script kScoreboard{.name = "scoreboard"};
constexpr Script kTestbed{.name = "test_hosts"};

constexpr Subcommand kSubcommands[] = {
    {"buckets", "Print the gradient buckets of DistributedDataParallel, in launch order",
     AddBuckets},
    {"compare", "Is the candidate slower than the base? compare BASE... -- CANDIDATE...",
     AddCompare, SeparateSides},
    {"diagnose", "What runs found, and why: who waits for whom, by their histories", AddDiagnose},
    {"doctor", "What in this machine is known to make training hang: GPUs, driver, NCCL, limits",
     AddDoctor},
    {"export", "Write a run in another program's format", AddExport},
    {"make-dataset", "Write an HDF5 file of samples to load in benchmarks", AddMakeDataset},
    {"matrix", "Which library, which setting? A plan over several configurations", nullptr, nullptr,
     &kMatrix},
    {"nightly", "Is this machine, or hostfile, fit for training? Resumable", nullptr, nullptr,
     &kNightly},
    {"report", "Write runs as one self-contained HTML page", AddReport},
    {"run", "Launch a benchmark K times: intervals over launches; two commands are compared",
     AddRun},
    {"sampler", "Print the indices that PyTorch's DistributedSampler gives a rank", AddSampler},
    {"score", "Of stress runs: what was found, right and wrong, false alarms, how soon", AddScore},
    {"scoreboard", "Launches of stress, many times, and how often the judge was right", nullptr,
     nullptr, &kScoreboard},
    {"show", "Print run files; of a directory, a line a run", AddShow},
    {"status", "What every rank of a watched job is in, now", AddStatus},
    {"stress", "stress with a launch for every case (--backend=mpi needs it), in one result",
     AddStress},
    {"testbed", "Several hosts on this machine: runs a command across them", nullptr, nullptr,
     &kTestbed},
    {"trace-ddp",
     "Print the collectives that each rank of a DistributedDataParallel program enqueues",
     AddTraceDdp},
    {"trend", "The history of every case over nights: what changed when, and slow machines",
     AddTrend},
    {"watch", "Watch an unmodified program of MPI, gloo or NCCL: who hangs, where, and why",
     AddWatch},
};

}  // namespace

std::span<const Subcommand> Subcommands() { return kSubcommands; }

bool IsHere(const Subcommand& subcommand) {
  const bool starts_programs = AddStress != nullptr;
  return subcommand.script != nullptr ? starts_programs : subcommand.add != nullptr;
}

}  // namespace lockstep::cli
