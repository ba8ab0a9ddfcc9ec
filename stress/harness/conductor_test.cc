// What the conductor of a case makes of what happens to ranks: events in; orders, outcomes and
// findings out. Faults and recoveries are in conductor_faults_test.cc, conductor_recovery_test.cc.
#include <csignal>

#include "core/verdict/history.h"
#include "gtest/gtest.h"
#include "stress/harness/testing/conduct.h"

namespace lockstep {
namespace {

constexpr char kClosed[] = "gloo: Connection closed by peer";

FleetStep Quiet(int rank) { return Of(FleetEventKind::kQuiet, rank); }
FleetStep Overdue(int rank) { return Of(FleetEventKind::kOverdue, rank); }
FleetStep Terminate() { return Of(FleetEventKind::kTerminate); }
History Fails50(int rank) { return After49(rank).FailsIn(AllReduce()); }
FleetStep BothDone() { return Ranks({After49(0).Leaves(0), After49(1).Leaves(0)}); }

RankEvidence Received(RankEvidence rank, std::uint64_t bytes) {
  TcpSocket socket;
  socket.remote = "10.0.0.1:4000";
  socket.received = bytes;
  rank.sockets = {socket};
  return rank;
}

TEST(Conductor, AHealthyCaseIsOverWhenAllHaveLeft) {
  EXPECT_EQ(Conduct({.all_commands = true},
                    {BothDone(), Finished(1), Exited(1, 0), After(0.5), Finished(0), Exited(0, 0)}),
            "companion 0 use 0\n"
            "companion 0 watch 0\n"
            "companion 1 use 0\n"
            "companion 1 watch 0\n"
            "start\n"
            "send 1 case: generation 0 as 1 of 2 from 0\n"
            "send 0 case: generation 0 as 0 of 2 from 0\n"
            "collect\n"
            "end\n"
            "pass: finished,finished\n");
}

TEST(Conductor, LeavingIsNoEndWithoutAReport) {
  EXPECT_EQ(Conduct({}, {BothDone(), Exited(1, 0), Exited(0, 0)}), "pass: finished,finished\n");
}

TEST(Conductor, AKilledRankIsProvedAndItsPeerMayStillFail) {
  EXPECT_EQ(
      Conduct({}, {Ranks({At50(0), At50(1).Signalled(SIGKILL)}), After(2), Signalled(1, SIGKILL),
                   After(0.2), Ranks({Fails50(0).Leaves(1), At50(1).Signalled(SIGKILL)}),
                   Raised(0, kClosed), Exited(0, 1)}),
      "fail: failed,killed after 2.001 s\n"
      "rank_killed of 1, proved\n");
}

TEST(Conductor, AKilledRankWhosePeerHearsNothing) {
  const auto steps = [] {
    return FleetSteps{Ranks({At50(0), At50(1).Signalled(SIGKILL)}), Signalled(1, SIGKILL)};
  };
  EXPECT_EQ(Conduct({}, steps()),
            "fail: hung,killed after 0.001 s\n"
            "rank_killed of 1, proved\n");
  EXPECT_EQ(Conduct({.backend = "mpi"}, steps()),
            "fail: hung,killed after 0.001 s\n"
            "rank_killed of 1, proved\n");
}

TEST(Conductor, AKillIsSeenBeforeTheReportOfItsVictim) {
  EXPECT_EQ(Conduct({}, {Ranks({At50(0), At50(1).Signalled(SIGKILL)}), Signalled(1, SIGKILL),
                         Raised(1, "gloo: no route to host")}),
            "fail: hung,killed after 0.001 s\n"
            "rank_killed of 1, proved\n");
}

TEST(Conductor, ACrash) {
  EXPECT_EQ(Conduct({}, {Ranks({At50(0), At50(1).Signalled(SIGSEGV)}), Signalled(1, SIGSEGV)}),
            "fail: hung,crashed after 0.001 s\n"
            "rank_crashed of 1, proved\n");
}

TEST(Conductor, AnExitWithZeroBetweenCollectives) {
  EXPECT_EQ(Conduct({}, {Ranks({At50(0), After49(1).Exited(0)}), Exited(1, 0)}),
            "fail: hung,failed after 0.001 s\n"
            "rank_exited of 1, proved\n");
}

TEST(Conductor, AnErrorThatARankRaises) {
  EXPECT_EQ(
      Conduct({}, {Ranks({At50(0), After49(1).Leaves(1)}), Raised(1, "bad shape"), Exited(1, 1)}),
      "fail: hung,failed after 0.001 s\n"
      "rank_failed of 1, proved\n");
}

TEST(Conductor, AReportThatComesAfterTheExit) {
  EXPECT_EQ(
      Conduct({}, {Ranks({At50(0), Fails50(1).Leaves(1)}), Exited(1, 1), Raised(1, "bad shape")}),
      "fail: hung,failed after 0.001 s\n"
      "rank_failed of 1, proved\n");
}

TEST(Conductor, AReportThatIsTakenWhenAllIsGathered) {
  EXPECT_EQ(Conduct({}, {Ranks({At50(0).Silent(6), After49(1).Silent(6)}), After(6), Overdue(0),
                         Raised(1, "bad shape")}),
            "fail: hung,failed after 6.001 s\n"
            "rank_failed of 1, proved\n");
}

TEST(Conductor, AStoppedRankIsProvedAtOnce) {
  EXPECT_EQ(Conduct({}, {Ranks({At50(0), After49(1).Stopped(SIGSTOP)}), Stopped(1, SIGSTOP)}),
            "fail: hung,stopped after 0.001 s\n"
            "rank_stopped of 1, proved\n");
}

TEST(Conductor, AStoppedRankMayBeContinuedBeforeTheOthersWait) {
  EXPECT_EQ(Conduct({}, {Ranks({After49(0), After49(1).Stopped(SIGSTOP)}), Stopped(1, SIGSTOP),
                         Of(FleetEventKind::kContinued, 1), BothDone(), Finished(0), Finished(1),
                         Exited(0, 0), Exited(1, 0)}),
            "pass: finished,finished\n");
}

TEST(Conductor, AMismatchThatHangs) {
  EXPECT_EQ(Conduct({}, {Ranks({At50(0), After49(1).Enters(Barrier())}), After(0.01), Quiet(1)}),
            "fail: hung,hung after 0.011 s\n"
            "collective_mismatch of 0,1, proved\n");
}

TEST(Conductor, QuietRanksThatMoveBetweenTwoLooks) {
  EXPECT_EQ(Conduct({}, {Ranks({At50(0), After49(1).Enters(Barrier())}),
                         Ranks({At50(0), After49(1).Does(Barrier())}), Quiet(1), BothDone(),
                         Finished(0), Finished(1), Exited(0, 0), Exited(1, 0)}),
            "pass: finished,finished\n");
}

TEST(Conductor, AMismatchIsKnownFromTheFirstLookThatShowsIt) {
  const History barrier = After49(0).Enters(Barrier());
  EXPECT_EQ(Conduct({.ranks = 3}, {Ranks({barrier, At50(1), After49(2)}), After(0.01), Quiet(0),
                                   After(3), Ranks({barrier, At50(1), At50(2)}), Quiet(2)}),
            "fail: hung,hung,hung after 0.011 s\n"
            "collective_mismatch of 0, proved\n");
}

TEST(Conductor, OneThatIsOverdueIsNotAccusedWhileOthersAreActive) {
  EXPECT_EQ(Conduct({}, {Ranks({At50(0).Silent(6), After49(1).Silent(1)}), After(6), Overdue(0),
                         BothDone(), Finished(0), Finished(1), Exited(0, 0), Exited(1, 0)}),
            "pass: finished,finished\n");
}

TEST(Conductor, AllAreSilentForTooLong) {
  EXPECT_EQ(Conduct({}, {Ranks({At50(0).Silent(6), After49(1).Silent(6)}), After(6), Overdue(0)}),
            "fail: hung,hung after 6.001 s\n"
            "rank_busy of 1, suspected\n");
}

TEST(Conductor, NobodyIsSilentWhoseBytesMove) {
  EXPECT_EQ(Conduct({}, {After(6), Ranks({Received(At50(0).Silent(6), 10), At50(1).Silent(6)}),
                         Overdue(0), Ranks({Received(At50(0).Silent(7), 20), At50(1).Silent(7)}),
                         After(0.6), Ranks({Received(At50(0).Silent(8), 20), At50(1).Silent(8)})}),
            "fail: hung,hung after 8.001 s\n"
            "transport_stall of nobody, suspected\n");
}

TEST(Conductor, TheLimit) {
  EXPECT_EQ(Conduct({.limit_seconds = 20}, {Ranks({After49(0), After49(1)})}),
            "unknown: finished,finished\n"
            "because not over after 20 s (--limit)\n");
}

TEST(Conductor, ToldToEnd) {
  EXPECT_EQ(Conduct({}, {Ranks({After49(0), After49(1)}), Of(FleetEventKind::kWarned), After(1),
                         Terminate(), Signalled(1, SIGTERM)}),
            "save\n"
            "save\n"
            "no stacks\n"
            "unknown: finished,finished\n"
            "because ended by a signal\n"
            "no further case\n");
}

TEST(Conductor, ToldToEndBecauseAHostIsLost) {
  EXPECT_EQ(Conduct({.hosts = {"a", "b"}}, {Ranks({At50(0), After49(1).Lost()}), Terminate(),
                                            After(0.1), Lost(1, Loss::kClosed)}),
            "save\n"
            "no stacks\n"
            "fail: finished,killed\n"
            "host_died of 1, proved\n"
            "no further case\n");
}

TEST(Conductor, ToldToEndWhileAllIsGathered) {
  EXPECT_EQ(
      Conduct({}, {Ranks({At50(0).Silent(6), After49(1).Silent(6)}), Overdue(0), Terminate()}),
      "save\n"
      "unknown: hung,hung after 0.001 s\n"
      "rank_busy of 1, suspected\n"
      "because ended by a signal\n"
      "no further case\n");
}

TEST(Conductor, AHostIsLost) {
  EXPECT_EQ(Conduct({.ranks = 3, .hosts = {"a", "b", "b"}},
                    {Ranks({At50(0), After49(1).Lost(), After49(2).Lost()}), Lost(2, Loss::kClosed),
                     Lost(1, Loss::kClosed)}),
            "fail: finished,killed,killed\n"
            "host_died of 1,2, proved\n"
            "no further case\n");
}

TEST(Conductor, AnAgentIsLost) {
  EXPECT_EQ(
      Conduct({.ranks = 3}, {Ranks({At50(0), After49(1).Lost(), At50(2)}), Lost(1, Loss::kClosed)}),
      "unknown: finished,killed,finished\n"
      "agent_lost of 1, proved\n"
      "because the agent of rank 1 ended: its connection was closed without a word; its worker "
      "ended with it\n"
      "no further case\n");
}

TEST(Conductor, WorkersThatCannotBeStarted) {
  EXPECT_EQ(Conduct({}, {Refused(EnvironmentError("no processes left"))}),
            "no stacks\n"
            "no processes left\n");
}

TEST(Conductor, WorkersThatCannotBeStartedBecauseAHostIsLost) {
  EXPECT_EQ(
      Conduct({.hosts = {"a", "b"}}, {Ranks({History(0), History(1).Lost()}),
                                      Refused(EnvironmentError("lost")), Lost(1, Loss::kClosed)}),
      "fail: finished,killed\n"
      "host_died of 1, proved\n"
      "no further case\n");
}

TEST(Conductor, RanksThatAreMeantToLinger) {
  EXPECT_EQ(Conduct({.lingers = true}, {Ranks({After49(0), After49(1)}), Finished(0), Finished(1)}),
            "pass: finished,finished\n");
}

TEST(Conductor, AProgramThatIsOverMayBeWhatAnotherWaitsFor) {
  EXPECT_EQ(Conduct({.lingers = true}, {Ranks({At50(0), After49(1)}), Quiet(0), Finished(1)}),
            "fail: hung,finished after 0.001 s\n"
            "rank_exited of 1, proved\n");
}

TEST(Conductor, AProcessThatDoesNotLeave) {
  EXPECT_EQ(Conduct({}, {Ranks({After49(0).Leaves(0), After49(1).In(Phase::kFinalize).Silent(6)}),
                         Finished(0), Finished(1), Exited(0, 0)}),
            "fail: finished,hung\n"
            "rank_busy of 1, suspected\n");
}

TEST(Conductor, AWorkerMaySayAnything) {
  EXPECT_EQ(
      Conduct({}, {Said(0, kReportMessage, "no JSON"), Said(0, 99, "what?"), Fired(0, 7),
                   OfFault(0, 7, FaultNews::kApplied), Aborted(0, 5), FromCompanion(0, "nonsense"),
                   BothDone(), Finished(1), Exited(0, 0), Exited(1, 0)}),
      "fail: failed,finished after 0.001 s\n"
      "rank_failed of 0, proved\n");
}

TEST(Conductor, ARankThatCannotRunIt) {
  EXPECT_EQ(
      Conduct({}, {Ranks({At50(0), After49(1).Leaves(4)}),
                   Said(1, kReportMessage, EncodeReport({.status = EnvironmentError("no GPU")})),
                   Exited(1, 4)}),
      "unknown: hung,failed after 0.001 s\n"
      "rank_failed of 1, proved\n"
      "because rank 1 could not run it: no GPU\n");
}

TEST(Conductor, WrongData) {
  EXPECT_EQ(
      Conduct({}, {BothDone(), Finished(0),
                   Said(1, kReportMessage, EncodeReport({.status = {}, .wrong_data = "element 3"})),
                   Exited(0, 0), Exited(1, 0)}),
      "fail: finished,corrupt after 0.001 s\n"
      "data_corruption of 1, proved\n");
}

}  // namespace
}  // namespace lockstep
