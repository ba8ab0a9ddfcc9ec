// diagnose_examples DIRECTORY: writes run files with histories, each named after its cause.
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/journal/purpose.h"
#include "core/verdict/history.h"
#include "core/verdict/judge.h"
#include "results/store/run.h"
#include "results/store/store.h"

namespace lockstep {
namespace {

// As a run would have stored it: what it said at the time, and the journals.
Run RunOf(const std::vector<RankEvidence>& evidence, const std::string& backend) {
  Run run;
  run.id = "0123abcd";
  run.name = "example";
  run.started_at = "2026-11-21T10:44:25Z";
  run.plan_text = R"({"deadline_seconds": 5})";
  CaseRecord record;
  record.name = "case";
  record.backend = backend;
  record.device = "host";
  record.ranks = static_cast<int>(evidence.size());
  run.cases.push_back(record);
  run.judgement = Judge(evidence, Setting{.deadline_seconds = 5, .backend = backend});
  run.verdict = run.judgement.verdict;
  for (const RankEvidence& rank : evidence) {
    RankHistory history{rank.rank, 0, rank.journal.missed, rank.journal.events};
    if (rank.state == ProcessState::kSignalled) {
      JournalEvent death = history.events.back();
      death.index += 1;
      death.kind = EventKind::kDeath;
      death.value = W_EXITCODE(0, rank.signal);
      history.events.push_back(death);
    }
    run.history.push_back(std::move(history));
  }
  return run;
}

History Trains(int rank, int iterations) {
  History history(rank);
  for (int i = 0; i < iterations; ++i) {
    history.Iteration(i).In(Phase::kForward).In(Phase::kBackward).As(Purpose::kBucket);
    history.Does(AllReduce(2));
  }
  return history;
}

std::vector<RankEvidence> UnevenInputs() {
  return {Trains(0, 5).Iteration(-1).In(Phase::kFinalize).Leaves(0),
          Trains(1, 5).Iteration(5).In(Phase::kBackward).Enters(AllReduce(2))};
}

std::vector<RankEvidence> JoinMeetsBarrier() {
  return {Trains(0, 3).In(Phase::kJoinExit).As(Purpose::kJoinAlive).Enters(AllReduce(1)),
          Trains(1, 3).In(Phase::kBarrier).As(Purpose::kBarrier).Enters(Barrier())};
}

int Main(const std::string& directory) {
  const std::vector<RankEvidence> healthy = {After49(0).Leaves(0), After49(1).Leaves(0)};
  for (const auto& [name, run] :
       {std::pair("healthy", RunOf(healthy, "mpi")),
        std::pair("uneven_inputs", RunOf(UnevenInputs(), "mpi")),
        std::pair("join_barrier", RunOf(JoinMeetsBarrier(), "gloo")),
        std::pair("killed", RunOf({At50(0), At50(1).Signalled(SIGKILL), At50(2)}, "mpi")),
        std::pair("stopped", RunOf({At50(0), After49(1).Stopped(SIGSTOP)}, "mpi")),
        std::pair("stall", RunOf({At50(0).Silent(6), At50(1).Silent(6)}, "mpi")),
        std::pair("early", RunOf({At50(0).Silent(1), At50(1).Silent(1)}, "mpi"))}) {
    const Status status = WriteRun(run, directory + "/" + name + ".h5");
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return static_cast<int>(lockstep::ExitCodeOf(status.code()));
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "diagnose_examples: name a directory to write to\n");
    return static_cast<int>(lockstep::ExitCode::kUsage);
  }
  return lockstep::Main(argv[1]);
}
