// Cases whose workers cannot be started: by the machine, by the loss of a host, or by a signal that
// came meanwhile.
#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"
#include "stress/run/testing/conduct.h"

namespace lockstep::stress::run {
namespace {

TEST(CaseRunnerStart, WorkersThatCannotBeStarted) {
  EXPECT_EQ(Conduct({}, {coordinator::Refused(EnvironmentError("no processes left"))}),
            "no stacks\n"
            "no processes left\n");
}

TEST(CaseRunnerStart, WorkersThatCannotBeStartedBecauseAHostIsLost) {
  EXPECT_EQ(Conduct({.hosts = {"a", "b"}},
                    {coordinator::Ranks({verdict::History(0), verdict::History(1).Lost()}),
                     coordinator::Refused(EnvironmentError("lost")),
                     coordinator::Lost(1, verdict::Loss::kClosed)}),
            "fail: finished,killed\n"
            "host_lost of 1, proved\n"
            "no further case\n");
}

TEST(CaseRunnerStart, ASignalToEndWhileWorkersStart) {
  EXPECT_EQ(Conduct({}, {coordinator::Ranks({verdict::History(0), verdict::History(1)}),
                         coordinator::Refused(EnvironmentError("rank 1 does not answer")),
                         coordinator::Of(coordinator::EventKind::kTerminate)}),
            "save\n"
            "no stacks\n"
            "unknown: finished,finished\n"
            "because ended by a signal\n"
            "no further case\n");
}

}  // namespace
}  // namespace lockstep::stress::run
