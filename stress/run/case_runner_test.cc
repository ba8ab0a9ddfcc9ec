// What the runner of a case makes of what happens to ranks: events in; orders, outcomes and
// findings out. Faults and recoveries are in case_runner_faults_test.cc and
// case_runner_recovery_test.cc.
#include <csignal>
#include <string>

#include "core/control/records.h"
#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"
#include "stress/run/testing/conduct.h"
#include "stress/workloads/program_report.h"

namespace lockstep::stress::run {
namespace {

coordinator::ScriptStep Overdue(int rank) {
  return coordinator::Of(coordinator::EventKind::kOverdue, rank);
}

verdict::RankEvidence Received(verdict::RankEvidence rank, std::uint64_t bytes) {
  verdict::TcpSocket socket;
  socket.remote = "10.0.0.1:4000";
  socket.received = bytes;
  rank.sockets = {socket};
  return rank;
}

TEST(CaseRunner, AHealthyCaseIsOverWhenAllHaveLeft) {
  EXPECT_EQ(Conduct({.all_commands = true},
                    {BothDone(), Finished(1), coordinator::Exited(1, 0), coordinator::After(0.5),
                     Finished(0), coordinator::Exited(0, 0)}),
            "plugin 0 use 0\n"
            "plugin 0 watch 0\n"
            "plugin 1 use 0\n"
            "plugin 1 watch 0\n"
            "start\n"
            "send 1 case: generation 0 as 1 of 2 from 0\n"
            "send 0 case: generation 0 as 0 of 2 from 0\n"
            "collect\n"
            "end\n"
            "pass: finished,finished\n");
}

TEST(CaseRunner, LeavingIsNoEndWithoutAReport) {
  EXPECT_EQ(Conduct({}, {BothDone(), coordinator::Exited(1, 0), coordinator::Exited(0, 0)}),
            "pass: finished,finished\n");
}

TEST(CaseRunner, AKillIsSeenBeforeTheReportOfItsVictim) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0), verdict::At50(1).Signalled(SIGKILL)}),
                   coordinator::Signalled(1, SIGKILL), Raised(1, "gloo: no route to host")}),
      "fail: hung,killed after 0.001 s\n"
      "rank_killed of 1, proved\n");
}

TEST(CaseRunner, ACrash) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0), verdict::At50(1).Signalled(SIGSEGV)}),
                   coordinator::Signalled(1, SIGSEGV)}),
      "fail: hung,crashed after 0.001 s\n"
      "rank_crashed of 1, proved\n");
}

TEST(CaseRunner, AnExitWithZeroBetweenCollectives) {
  EXPECT_EQ(Conduct({}, {coordinator::Ranks({verdict::At50(0), verdict::After49(1).Exited(0)}),
                         coordinator::Exited(1, 0)}),
            "fail: hung,failed after 0.001 s\n"
            "rank_exited of 1, proved\n");
}

TEST(CaseRunner, AnErrorThatARankRaises) {
  EXPECT_EQ(Conduct({}, {coordinator::Ranks({verdict::At50(0), verdict::After49(1).Leaves(1)}),
                         Raised(1, "bad shape"), coordinator::Exited(1, 1)}),
            "fail: hung,failed after 0.001 s\n"
            "rank_failed of 1, proved\n");
}

TEST(CaseRunner, AReportThatComesAfterTheExit) {
  EXPECT_EQ(
      Conduct({},
              {coordinator::Ranks(
                   {verdict::At50(0), verdict::After49(1).FailsIn(verdict::AllReduce()).Leaves(1)}),
               coordinator::Exited(1, 1), Raised(1, "bad shape")}),
      "fail: hung,failed after 0.001 s\n"
      "rank_failed of 1, proved\n");
}

TEST(CaseRunner, AReportThatIsTakenWhenAllIsGathered) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0).Silent(6), verdict::After49(1).Silent(6)}),
                   coordinator::After(6), Overdue(0), Raised(1, "bad shape")}),
      "fail: hung,failed after 6.001 s\n"
      "rank_failed of 1, proved\n");
}

// All are asked again then: what was known of them is older.
TEST(CaseRunner, RanksThatFinishWhileAllIsGathered) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0).Silent(6), verdict::At50(1).Silent(6)}),
                   coordinator::After(6), Overdue(0), BothDone(), Finished(0), Finished(1)}),
      "pass: finished,finished\n");
}

TEST(CaseRunner, AMismatchThatHangs) {
  EXPECT_EQ(Conduct({}, {coordinator::Ranks(
                             {verdict::At50(0), verdict::After49(1).Enters(verdict::Barrier())}),
                         coordinator::After(0.01), Quiet(1)}),
            "fail: hung,hung after 0.011 s\n"
            "collective_mismatch of 0,1, proved\n");
}

TEST(CaseRunner, QuietRanksThatMoveBetweenTwoLooks) {
  EXPECT_EQ(
      Conduct(
          {},
          {coordinator::Ranks({verdict::At50(0), verdict::After49(1).Enters(verdict::Barrier())}),
           coordinator::Ranks({verdict::At50(0), verdict::After49(1).Does(verdict::Barrier())}),
           Quiet(1), BothDone(), Finished(0), Finished(1), coordinator::Exited(0, 0),
           coordinator::Exited(1, 0)}),
      "pass: finished,finished\n");
}

TEST(CaseRunner, AMismatchIsKnownFromTheFirstLookThatShowsIt) {
  const verdict::History barrier = verdict::After49(0).Enters(verdict::Barrier());
  EXPECT_EQ(Conduct({.ranks = 3},
                    {coordinator::Ranks({barrier, verdict::At50(1), verdict::After49(2)}),
                     coordinator::After(0.01), Quiet(0), coordinator::After(3),
                     coordinator::Ranks({barrier, verdict::At50(1), verdict::At50(2)}), Quiet(2)}),
            "fail: hung,hung,hung after 0.011 s\n"
            "collective_mismatch of 0, proved\n");
}

TEST(CaseRunner, OneThatIsOverdueIsNotAccusedWhileOthersAreActive) {
  EXPECT_EQ(
      Conduct({}, {coordinator::After(6),
                   coordinator::Ranks({verdict::At50(0).Silent(6), verdict::After49(1).Silent(1)}),
                   Overdue(0), BothDone(), Finished(0), Finished(1), coordinator::Exited(0, 0),
                   coordinator::Exited(1, 0)}),
      "pass: finished,finished\n");
}

TEST(CaseRunner, AllAreSilentForTooLong) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0).Silent(6), verdict::After49(1).Silent(6)}),
                   coordinator::After(6), Overdue(0)}),
      "fail: hung,hung after 6.001 s\n"
      "rank_busy of 1, suspected\n");
}

TEST(CaseRunner, ManyThatAreOverdueAreAskedForStacksOnce) {
  const std::string text =
      Conduct({.all_commands = true},
              {coordinator::Ranks({verdict::At50(0).Silent(6), verdict::After49(1).Silent(6)}),
               coordinator::After(6), Overdue(0), Overdue(1)});
  const std::size_t first = text.find("collect\n");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("collect\n", first + 1), std::string::npos) << text;
}

// Between a glance and the look that reads stacks, or between two answers to that look.
TEST(CaseRunner, ARankGoesOnWhileAllAreTakenForSilent) {
  const auto looks = [](double seconds) {
    return coordinator::Ranks({verdict::At50(0).Silent(7), verdict::After49(1).Silent(seconds)});
  };
  const coordinator::Script over = {
      coordinator::After(0.1),  BothDone(), Finished(0), Finished(1), coordinator::Exited(0, 0),
      coordinator::Exited(1, 0)};
  EXPECT_EQ(Conduct({}, coordinator::Steps(coordinator::After(6), looks(6), looks(0.1), Overdue(0),
                                           over)),
            "pass: finished,finished\n");
  EXPECT_EQ(Conduct({}, coordinator::Steps(coordinator::After(6), looks(6), looks(6), looks(0.1),
                                           Overdue(0),
                                           coordinator::Said(1, kMachineMessage, "one GPU"), over)),
            "pass: finished,finished\n");
}

// Ranks meet through agents, and links lead through their relays.
TEST(CaseRunner, NobodyIsSilentWhoWaitsForALateAgent) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0).Silent(6), verdict::At50(1).Silent(6)}),
                   coordinator::After(6), coordinator::Late(), Overdue(0), BothDone(), Finished(0),
                   Finished(1), coordinator::Exited(0, 0), coordinator::Exited(1, 0)}),
      "pass: finished,finished\n");
}

TEST(CaseRunner, SilenceCountsFromWhenAgentsWereAwake) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0).Silent(6), verdict::After49(1).Silent(6)}),
                   coordinator::After(6), coordinator::Late(), Overdue(0)}),
      "fail: hung,hung after 11.001 s\n"
      "rank_busy of 1, suspected\n");
}

TEST(CaseRunner, NobodyIsSilentWhoseBytesMove) {
  EXPECT_EQ(Conduct({}, {coordinator::After(6),
                         coordinator::Ranks({Received(verdict::At50(0).Silent(6), 10),
                                             verdict::At50(1).Silent(6)}),
                         Overdue(0),
                         coordinator::Ranks({Received(verdict::At50(0).Silent(7), 20),
                                             verdict::At50(1).Silent(7)}),
                         coordinator::After(0.6),
                         coordinator::Ranks({Received(verdict::At50(0).Silent(8), 20),
                                             verdict::At50(1).Silent(8)})}),
            "fail: hung,hung after 8.001 s\n"
            "transport_stall of nobody, suspected\n");
}

TEST(CaseRunner, TheLimit) {
  EXPECT_EQ(Conduct({.limit_seconds = 20},
                    {coordinator::After(19),
                     coordinator::Ranks({verdict::After49(0), verdict::After49(1)})}),
            "unknown: finished,finished\n"
            "because not over after 20 s (--limit)\n");
}

TEST(CaseRunner, ToldToEnd) {
  EXPECT_EQ(Conduct({}, {coordinator::Ranks({verdict::After49(0), verdict::After49(1)}),
                         coordinator::Of(coordinator::EventKind::kWarned), coordinator::After(1),
                         Terminate(), coordinator::Signalled(1, SIGTERM)}),
            "save\n"
            "save\n"
            "no stacks\n"
            "unknown: finished,finished\n"
            "because ended by a signal\n"
            "no further case\n");
}

TEST(CaseRunner, ToldToEndBecauseAHostIsLost) {
  EXPECT_EQ(
      Conduct({.hosts = {"a", "b"}},
              {coordinator::Ranks({verdict::At50(0), verdict::After49(1).Lost()}), Terminate(),
               coordinator::After(0.1), coordinator::Lost(1, verdict::Loss::kClosed)}),
      "save\n"
      "no stacks\n"
      "fail: finished,killed\n"
      "host_lost of 1, proved\n"
      "no further case\n");
}

TEST(CaseRunner, ToldToEndWhileAllIsGathered) {
  EXPECT_EQ(
      Conduct({}, {coordinator::Ranks({verdict::At50(0).Silent(6), verdict::After49(1).Silent(6)}),
                   Overdue(0), Terminate()}),
      "save\n"
      "unknown: hung,hung\n"
      "rank_busy of 1, suspected\n"
      "because ended by a signal\n"
      "no further case\n");
}

TEST(CaseRunner, AHostIsLost) {
  EXPECT_EQ(Conduct({.ranks = 3, .hosts = {"a", "b", "b"}},
                    {coordinator::Ranks({verdict::At50(0), verdict::After49(1).Lost(),
                                         verdict::After49(2).Lost()}),
                     coordinator::Lost(2, verdict::Loss::kClosed),
                     coordinator::Lost(1, verdict::Loss::kClosed)}),
            "fail: finished,killed,killed\n"
            "host_lost of 1,2, proved\n"
            "no further case\n");
}

TEST(CaseRunner, AnAgentIsLost) {
  EXPECT_EQ(
      Conduct({.ranks = 3},
              {coordinator::Ranks({verdict::At50(0), verdict::After49(1).Lost(), verdict::At50(2)}),
               coordinator::Lost(1, verdict::Loss::kClosed)}),
      "unknown: finished,killed,finished\n"
      "agent_lost of 1, proved\n"
      "because the agent of rank 1 ended: its connection was closed without a word; its worker "
      "ended with it\n"
      "no further case\n");
}

TEST(CaseRunner, RanksThatAreMeantToLinger) {
  EXPECT_EQ(
      Conduct({.lingers = true}, {coordinator::Ranks({verdict::After49(0), verdict::After49(1)}),
                                  Finished(0), Finished(1)}),
      "pass: finished,finished\n");
}

TEST(CaseRunner, AProgramThatIsOverMayBeWhatAnotherWaitsFor) {
  EXPECT_EQ(Conduct({.lingers = true}, {coordinator::Ranks({verdict::At50(0), verdict::After49(1)}),
                                        Quiet(0), Finished(1)}),
            "fail: hung,finished after 0.001 s\n"
            "rank_exited of 1, proved\n");
}

TEST(CaseRunner, AProcessThatDoesNotLeave) {
  EXPECT_EQ(
      Conduct({},
              {coordinator::Ranks({verdict::After49(0).Leaves(0),
                                   verdict::After49(1).In(journal::Phase::kFinalize).Silent(6)}),
               Finished(0), Finished(1), coordinator::Exited(0, 0)}),
      "fail: finished,hung\n"
      "rank_busy of 1, suspected\n");
}

// Its agent does not count the time in which it got no processor, or the kernel was ending it.
TEST(CaseRunner, AProcessThatLeavesLate) {
  const auto leaves = [](double silent) {
    return coordinator::Ranks({verdict::After49(0).Leaves(0),
                               verdict::After49(1).In(journal::Phase::kFinalize).Silent(silent)});
  };
  EXPECT_EQ(Conduct({}, {leaves(0), Finished(0), Finished(1), coordinator::Exited(0, 0),
                         coordinator::After(4), leaves(1), coordinator::After(4), leaves(2),
                         coordinator::After(3), BothDone(), coordinator::Exited(1, 0)}),
            "pass: finished,finished\n");
}

TEST(CaseRunner, AWorkerMaySayAnything) {
  EXPECT_EQ(Conduct({}, {coordinator::Said(0, kReportMessage, "no JSON"),
                         coordinator::Said(0, 99, "what?"), Fired(0, 7),
                         coordinator::OfFault(0, 7, control::FaultNews::kApplied), Aborted(0, 5),
                         coordinator::FromPlugin(0, "nonsense"), BothDone(), Finished(1),
                         coordinator::Exited(0, 0), coordinator::Exited(1, 0)}),
            "fail: failed,finished after 0.001 s\n"
            "rank_failed of 0, proved\n");
}

TEST(CaseRunner, ARankThatCannotRunIt) {
  EXPECT_EQ(Conduct({}, {coordinator::Ranks({verdict::At50(0), verdict::After49(1).Leaves(4)}),
                         coordinator::Said(1, kReportMessage,
                                           control::Encode(workloads::ProgramReport{
                                               .status = EnvironmentError("no GPU")})),
                         coordinator::Exited(1, 4)}),
            "unknown: hung,failed after 0.001 s\n"
            "rank_failed of 1, proved\n"
            "because rank 1 could not run it: no GPU\n");
}

TEST(CaseRunner, WrongData) {
  EXPECT_EQ(Conduct({}, {BothDone(), Finished(0),
                         coordinator::Said(1, kReportMessage,
                                           control::Encode(workloads::ProgramReport{
                                               .status = {}, .wrong_data = "element 3"})),
                         coordinator::Exited(0, 0), coordinator::Exited(1, 0)}),
            "fail: finished,corrupt after 0.001 s\n"
            "data_corruption of 1, proved\n");
}

}  // namespace
}  // namespace lockstep::stress::run
