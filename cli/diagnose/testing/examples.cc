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
#include "core/verdict/judge.h"
#include "core/verdict/testing/history.h"
#include "core/verdict/testing/paced.h"
#include "results/store/run.h"
#include "results/store/store.h"

namespace lockstep::cli::diagnose {
namespace {

// As a run would have stored it: what it said at the time, and the journals.
results::store::Run RunOf(const std::vector<verdict::RankEvidence>& evidence,
                          const std::string& backend) {
  results::store::Run run;
  run.id = "0123abcd";
  run.name = "example";
  run.started_at = "2026-11-21T10:44:25Z";
  run.plan_text = R"({"deadline_seconds": 5})";
  results::store::CaseRecord record;
  record.name = "case";
  record.backend = backend;
  record.device = "host";
  record.ranks = static_cast<int>(evidence.size());
  run.cases.push_back(record);
  run.judgement =
      verdict::Judge(evidence, verdict::Setting{.deadline_seconds = 5, .backend = backend});
  run.verdict = run.judgement.verdict;
  for (const verdict::RankEvidence& rank : evidence) {
    results::store::RankHistory history{rank.rank, 0, rank.journal.missed, rank.journal.events};
    if (rank.state == verdict::ProcessState::kSignalled) {
      journal::JournalEvent death = history.events.back();
      death.index += 1;
      death.kind = journal::EventKind::kDeath;
      death.value = W_EXITCODE(0, rank.signal);
      history.events.push_back(death);
    }
    run.history.push_back(std::move(history));
  }
  return run;
}

// As stress stores a case, whose verdict says whether it came out as expected.
results::store::Run CaseOf(const std::vector<verdict::RankEvidence>& evidence,
                           verdict::Verdict verdict, verdict::Cause cause) {
  results::store::Run run = RunOf(evidence, "gloo");
  verdict::Finding finding;
  finding.cause = cause;
  finding.culprits = {0, 1};
  finding.headline = verdict::Headline("ranks 0 and 1");
  finding.message = "of ranks 0 and 1";
  results::store::CaseRecord& record = run.cases.front();
  record.trial.emplace();
  record.judgement.outcomes = run.judgement.outcomes;
  record.judgement.findings = {finding};
  record.judgement.verdict = verdict;
  run.judgement = record.judgement;
  run.verdict = verdict;
  return run;
}

verdict::History Trains(int rank, int iterations) {
  verdict::History history(rank);
  for (int i = 0; i < iterations; ++i) {
    history.Iteration(i)
        .In(journal::Phase::kForward)
        .In(journal::Phase::kBackward)
        .As(journal::Purpose::kBucket);
    history.Does(verdict::AllReduce(2));
  }
  return history;
}

std::vector<verdict::RankEvidence> UnevenInputs() {
  return {Trains(0, 5).Iteration(-1).In(journal::Phase::kFinalize).Leaves(0),
          Trains(1, 5).Iteration(5).In(journal::Phase::kBackward).Enters(verdict::AllReduce(2))};
}

std::vector<verdict::RankEvidence> JoinMeetsBarrier() {
  return {Trains(0, 3)
              .In(journal::Phase::kJoinExit)
              .As(journal::Purpose::kJoinAlive)
              .Enters(verdict::AllReduce(1)),
          Trains(1, 3)
              .In(journal::Phase::kBarrier)
              .As(journal::Purpose::kBarrier)
              .Enters(verdict::Barrier())};
}

// Rank 1 makes the others wait, and rank 2 may be killed behind that.
std::vector<verdict::RankEvidence> SlowRank(bool killed) {
  std::vector<verdict::RankEvidence> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    verdict::History history = killed && rank != 2 ? verdict::At50(rank) : verdict::After49(rank);
    if (!killed) {
      history.Leaves(0);
    } else if (rank == 2) {
      history.Signalled(SIGKILL);
    }
    ranks.push_back(verdict::Paced(history, rank == 1 ? 1000 : 100, rank == 1 ? 100 : 1000));
  }
  return ranks;
}

int Main(const std::string& directory) {
  const std::vector<verdict::RankEvidence> healthy = {verdict::After49(0).Leaves(0),
                                                      verdict::After49(1).Leaves(0)};
  for (const auto& [name, run] :
       {std::pair("healthy", RunOf(healthy, "mpi")),
        std::pair("uneven_inputs", RunOf(UnevenInputs(), "mpi")),
        std::pair("join_barrier", RunOf(JoinMeetsBarrier(), "gloo")),
        std::pair("killed",
                  RunOf({verdict::At50(0), verdict::At50(1).Signalled(SIGKILL), verdict::At50(2)},
                        "mpi")),
        std::pair("stopped",
                  RunOf({verdict::At50(0), verdict::After49(1).Stopped(SIGSTOP)}, "mpi")),
        std::pair("stall", RunOf({verdict::At50(0).Silent(6), verdict::At50(1).Silent(6)}, "mpi")),
        std::pair("slow_rank", RunOf(SlowRank(false), "mpi")),
        std::pair("slow_and_killed", RunOf(SlowRank(true), "mpi")),
        std::pair("slow_link", CaseOf(healthy, verdict::Verdict::kPass, verdict::Cause::kSlowLink)),
        std::pair("agent_lost", CaseOf({verdict::At50(0), verdict::After49(1).Leaves(1)},
                                       verdict::Verdict::kUnknown, verdict::Cause::kAgentLost)),
        std::pair("no_memory", CaseOf({verdict::At50(0), verdict::At50(1).Reports("no memory")},
                                      verdict::Verdict::kUnknown, verdict::Cause::kOutOfMemory)),
        std::pair("early",
                  RunOf({verdict::At50(0).Silent(1), verdict::At50(1).Silent(1)}, "mpi"))}) {
    const Status status = results::store::WriteRun(run, directory + "/" + name + ".h5");
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return static_cast<int>(lockstep::ExitCodeOf(status.code()));
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::cli::diagnose

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "diagnose_examples: name a directory to write to\n");
    return static_cast<int>(lockstep::ExitCode::kUsage);
  }
  return lockstep::cli::diagnose::Main(argv[1]);
}
