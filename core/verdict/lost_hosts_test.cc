// What is concluded from the ends of agents and hosts, given one kind of loss a rank. Each of its
// launches is literal; no process and no connection is involved.
#include "core/verdict/lost_hosts.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/verdict/judge.h"
#include "core/verdict/testing/history.h"

namespace lockstep::verdict {
namespace {

struct Launch {
  std::vector<RankPlace> places;
  std::vector<RankEvidence> evidence;
  Judgement judgement;
};

// Two ranks a host; `losses` by rank. Ranks that are lost left no evidence, unless it was only
// their launcher.
Launch LaunchOf(const std::vector<Loss>& losses, int ranks_a_host = 2) {
  Launch launch;
  for (std::size_t rank = 0; rank < losses.size(); ++rank) {
    const int number = static_cast<int>(rank);
    launch.places.push_back({"node" + std::to_string(number / ranks_a_host + 1), losses[rank]});
    RankEvidence& evidence = launch.evidence.emplace_back();
    evidence.rank = number;
    const bool heard = losses[rank] == Loss::kNone || losses[rank] == Loss::kLauncher ||
                       losses[rank] == Loss::kTold;
    if (!heard) evidence.state = ProcessState::kLost;
  }
  launch.judgement = Judge(launch.evidence, 30);
  return launch;
}

const Finding* Named(Launch& launch) {
  NameLostHosts(launch.places, launch.evidence, launch.judgement);
  for (const Finding& finding : launch.judgement.findings) ExpectHeadline(finding);
  return launch.judgement.findings.empty() ? nullptr : &launch.judgement.findings.front();
}

constexpr Loss kHere = Loss::kNone, kClosed = Loss::kClosed, kCutOff = Loss::kCutOff,
               kDeaf = Loss::kDeaf, kLauncher = Loss::kLauncher, kLeft = Loss::kLeft,
               kReset = Loss::kReset;

TEST(LostHosts, AHostWhoseConnectionsAllClosedLostItsAgents) {
  Launch launch = LaunchOf({kHere, kHere, kClosed, kClosed});
  const Finding* const finding = Named(launch);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, Cause::kHostLost);
  EXPECT_TRUE(finding->proved);
  EXPECT_EQ(finding->culprits, (std::vector<int>{2, 3}));
  EXPECT_EQ(finding->message,
            "host node2 (ranks 2 and 3) lost all its agents: every connection was closed, without "
            "a word")
      << "a kernel closed them, so the host lived";
  EXPECT_EQ(launch.judgement.verdict, Verdict::kFail);
  EXPECT_EQ(launch.judgement.outcomes[3].outcome, Outcome::kKilled);
  // What was known before explains nothing any more, and is not lost.
  ASSERT_EQ(launch.judgement.findings.size(), 1u);
  EXPECT_EQ(finding->evidence.front().cause, Cause::kUnknown);
}

TEST(LostHosts, OneAgentOfAHostIsNotTheHost) {
  Launch launch = LaunchOf({kHere, kHere, kHere, kClosed});
  const Finding* const finding = Named(launch);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, Cause::kAgentLost);
  EXPECT_TRUE(finding->proved);
  EXPECT_EQ(finding->culprits, (std::vector<int>{3}));
  EXPECT_EQ(launch.judgement.outcomes[3].outcome, Outcome::kKilled);
  EXPECT_EQ(launch.judgement.verdict, Verdict::kUnknown) << "nothing was tested";
  EXPECT_NE(finding->message.find("; on host node2"), std::string::npos) << finding->message;
}

// A firewall that resets connections looks like the end of a process.
TEST(LostHosts, AResetProvesTheEndOfAConnectionOnly) {
  Launch agent = LaunchOf({kHere, kHere, kHere, kReset});
  agent.evidence[0].error = "gloo: [pair.cc:589] Read error [10.0.0.2]:7047: Connection reset";
  agent.judgement = Judge(agent.evidence, 30);
  ASSERT_TRUE(agent.judgement.findings.front().proved);
  const Finding* finding = Named(agent);
  EXPECT_EQ(finding->cause, Cause::kAgentLost);
  EXPECT_FALSE(finding->proved);
  EXPECT_EQ(finding->culprits, (std::vector<int>{3}));
  EXPECT_NE(finding->message.find("a firewall"), std::string::npos) << finding->message;
  EXPECT_EQ(agent.judgement.verdict, Verdict::kUnknown);
  EXPECT_EQ(agent.judgement.findings.size(), 1u) << "others may have failed because of that";
  EXPECT_EQ(agent.judgement.outcomes[3].outcome, Outcome::kFailed);

  for (const Loss other : {kReset, kClosed, Loss::kGone}) {
    Launch host = LaunchOf({kHere, kHere, kReset, other});
    finding = Named(host);
    EXPECT_EQ(finding->cause, Cause::kHostLost);
    EXPECT_FALSE(finding->proved);
    EXPECT_NE(finding->message.find("a firewall"), std::string::npos) << finding->message;
    EXPECT_EQ(host.judgement.outcomes[2].outcome, Outcome::kFailed);
  }
  EXPECT_TRUE(WeAreCutOff(LaunchOf({kHere, kReset, kReset, kReset}).places)) << "they may live";
}

TEST(LostHosts, AProofIsNoEvidenceOfASuspicion) {
  Launch launch = LaunchOf({kHere, kHere, kCutOff, kCutOff});
  launch.evidence[0].state = ProcessState::kExited;
  launch.evidence[0].exit_code = 3;
  launch.judgement = Judge(launch.evidence, 30);
  ASSERT_TRUE(launch.judgement.findings.front().proved);
  NameLostHosts(launch.places, launch.evidence, launch.judgement);
  std::vector<FindingCause> causes;
  for (const Finding& finding : launch.judgement.findings) causes.push_back(finding.cause);
  EXPECT_EQ(causes, (std::vector<FindingCause>{Cause::kRankExited, Cause::kHostCutOff}));
}

TEST(LostHosts, ANeighbourWithoutARouteIsAnEffectOfItsSilence) {
  Launch launch = LaunchOf({kHere, kHere, kCutOff, kCutOff});
  launch.evidence[0].error = "gloo: [pair.cc:589] Read error [10.0.0.2]:7047: No route to host";
  launch.judgement = Judge(launch.evidence, 30);
  EXPECT_EQ(Named(launch)->cause, Cause::kHostCutOff);
  EXPECT_EQ(launch.judgement.findings.size(), 1u);
}

TEST(LostHosts, NoLossNoFinding) {
  Launch launch = LaunchOf({kHere, kHere, kHere, kHere});
  EXPECT_EQ(Named(launch), nullptr);
}

TEST(LostHosts, SilenceIsSuspected) {
  Launch cut = LaunchOf({kHere, kHere, kCutOff, kDeaf});
  ASSERT_NE(Named(cut), nullptr);
  EXPECT_EQ(cut.judgement.findings.front().cause, Cause::kHostCutOff);
  EXPECT_FALSE(cut.judgement.findings.front().proved);
  EXPECT_EQ(cut.judgement.outcomes[2].outcome, Outcome::kHung);
  Launch deaf = LaunchOf({kHere, kHere, kDeaf, kDeaf});
  ASSERT_NE(Named(deaf), nullptr);
  EXPECT_EQ(deaf.judgement.findings.front().cause, Cause::kHostStopped);
  EXPECT_FALSE(deaf.judgement.findings.front().proved);
  EXPECT_EQ(deaf.judgement.outcomes[2].outcome, Outcome::kStopped);
}

TEST(LostHosts, TheSmallerPartIsTheOneThatIsCutOff) {
  Launch launch = LaunchOf({kHere, kHere, kCutOff, kCutOff, kCutOff, kCutOff});
  EXPECT_TRUE(WeAreCutOff(launch.places));
  const Finding* const finding = Named(launch);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, Cause::kHostCutOff);
  EXPECT_EQ(finding->culprits, (std::vector<int>{0, 1}));
  EXPECT_NE(finding->message.find("host node1 "), std::string::npos) << finding->message;
  // Halves: the coordinator's goes on.
  EXPECT_FALSE(WeAreCutOff(LaunchOf({kHere, kHere, kCutOff, kCutOff}).places));
  // The others live, say so and went on.
  EXPECT_TRUE(WeAreCutOff(LaunchOf({kHere, kHere, kHere, kLeft}).places));
  // Dead hosts hold no file, however many they are.
  EXPECT_FALSE(WeAreCutOff(LaunchOf({kHere, kClosed, kClosed, kClosed}).places));
}

TEST(LostHosts, ALauncherIsToldOfByItsAgents) {
  Launch launch = LaunchOf({kHere, kHere, kLauncher, kClosed});
  const Finding* const finding = Named(launch);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, Cause::kLauncherLost);
  EXPECT_TRUE(finding->proved);
  EXPECT_EQ(finding->culprits, (std::vector<int>{2, 3}));
  // The only one of its kind that a launch of one host can have.
  Launch one = LaunchOf({kLauncher, kHere}, 2);
  ASSERT_NE(Named(one), nullptr);
  EXPECT_EQ(one.judgement.findings.front().cause, Cause::kLauncherLost);
  Launch closed = LaunchOf({kHere, kClosed}, 2);
  ASSERT_NE(Named(closed), nullptr);
  EXPECT_EQ(closed.judgement.findings.front().cause, Cause::kAgentLost);
}

// What a launch of one host, whose agent of rank 0 or another ended, says of the rank that stayed.
Launch WithRank1(Loss loss_of_0, const std::function<void(RankEvidence&)>& change) {
  Launch launch = LaunchOf({loss_of_0, kHere, kHere}, 3);
  change(launch.evidence[1]);
  launch.judgement = Judge(launch.evidence, 30);
  NameLostHosts(launch.places, launch.evidence, launch.judgement);
  return launch;
}

TEST(LostAgents, AnEndOrAnErrorOfOthersIsAnEffect) {
  for (const Loss loss : {kClosed, Loss::kTold}) {
    const Launch exited = WithRank1(
        loss, [](RankEvidence& rank) { rank.state = ProcessState::kExited, rank.exit_code = 1; });
    const Launch echo = WithRank1(loss, [](RankEvidence& rank) {
      rank.error = "gloo: [pair.cc:589] Read error [127.0.0.1]:7047: Connection reset by peer";
    });
    for (const Launch& launch : {exited, echo}) {
      ASSERT_EQ(launch.judgement.findings.size(), 1u);
      const Finding& finding = launch.judgement.findings.front();
      EXPECT_EQ(finding.cause, Cause::kAgentLost);
      EXPECT_TRUE(finding.proved);
      EXPECT_EQ(finding.culprits, (std::vector<int>{0}));
      EXPECT_FALSE(finding.evidence.empty()) << "nothing is forgotten";
      EXPECT_EQ(launch.judgement.outcomes[0].outcome, Outcome::kKilled);
      EXPECT_EQ(launch.judgement.verdict, Verdict::kUnknown);
    }
  }
  // What an agent's end cannot bring about stands beside it.
  const Launch crashed = WithRank1(
      kClosed, [](RankEvidence& rank) { rank.state = ProcessState::kSignalled, rank.signal = 11; });
  ASSERT_EQ(crashed.judgement.findings.size(), 2u);
  EXPECT_EQ(crashed.judgement.findings[1].cause, Cause::kRankCrashed);
  EXPECT_EQ(crashed.judgement.verdict, Verdict::kFail);
}

// Rank 1 was killed; the launcher ended the others, rank 0 first; rank 2 succeeded it.
TEST(LostAgents, WhoMayHaveBeenEndedWithTheLaunchIsNotAccused) {
  const Launch launch = WithRank1(Loss::kGone, [](RankEvidence& rank) {
    rank.error = "gloo: [pair.cc:589] Read error [127.0.0.1]:7047: Connection reset by peer";
  });
  ASSERT_EQ(launch.judgement.findings.size(), 1u);
  const Finding& finding = launch.judgement.findings.front();
  EXPECT_EQ(finding.cause, Cause::kUnknown);
  EXPECT_FALSE(finding.proved);
  EXPECT_NE(finding.message.find("the agent of rank 0 ended while the launch was being ended"),
            std::string::npos)
      << finding.message;
  EXPECT_FALSE(finding.evidence.empty()) << "nothing is forgotten";
  EXPECT_EQ(launch.judgement.outcomes[0].outcome, Outcome::kFailed);
  EXPECT_EQ(launch.judgement.verdict, Verdict::kUnknown);
  // A fact comes before it.
  const Launch crashed = WithRank1(Loss::kGone, [](RankEvidence& rank) {
    rank.state = ProcessState::kSignalled, rank.signal = 11;
  });
  ASSERT_EQ(crashed.judgement.findings.size(), 2u);
  EXPECT_EQ(crashed.judgement.findings[0].cause, Cause::kRankCrashed);
  EXPECT_EQ(crashed.judgement.findings[1].cause, Cause::kUnknown);
}

TEST(LostHosts, AnAgentThatOnlyWasNotHeardProvesNoDeath) {
  Launch launch = LaunchOf({kClosed, kClosed, kHere, kHere});
  launch.places[1].assumed = true;
  const Finding* const finding = Named(launch);
  EXPECT_EQ(finding->cause, Cause::kHostLost);
  EXPECT_FALSE(finding->proved);
  EXPECT_EQ(launch.judgement.outcomes[1].outcome, Outcome::kFailed);
}

TEST(LostHosts, OneAgentThatEndedBesideASilentOneIsNoHostThatIsCutOff) {
  Launch launch = LaunchOf({kHere, kHere, kClosed, kDeaf});
  EXPECT_EQ(Named(launch)->cause, Cause::kAgentLost);
  EXPECT_EQ(launch.judgement.findings[0].culprits, (std::vector<int>{2}));
}

TEST(LostHosts, AHostThatMayHaveBeenEndedWithTheLaunchIsNotAccused) {
  Launch gone = LaunchOf({Loss::kGone, Loss::kGone, kHere, kHere});
  EXPECT_EQ(Named(gone)->cause, Cause::kUnknown);
  // One of its agents was seen to be lost before that. The launcher may have ended the other one.
  Launch died = LaunchOf({kClosed, Loss::kGone, kHere, kHere});
  const Finding* const finding = Named(died);
  EXPECT_EQ(finding->cause, Cause::kHostLost);
  EXPECT_FALSE(finding->proved);
  EXPECT_NE(finding->message.find("ended while the launch was being ended"), std::string::npos)
      << finding->message;
  EXPECT_EQ(died.judgement.outcomes[1].outcome, Outcome::kFailed);
}

TEST(LostAgents, AWorkerThatEndedBeforeItsAgentTellsMore) {
  Launch launch = LaunchOf({kHere, kHere, kHere}, 3);
  launch.places[1].loss = Loss::kTold;
  launch.evidence[1].state = ProcessState::kSignalled;
  launch.evidence[1].signal = 9;
  launch.judgement = Judge(launch.evidence, 30);
  const Finding* const finding = Named(launch);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, Cause::kRankKilled);
}

// A scheduler signals all processes of a host. The coordinator's host may come late.
TEST(LostAgents, ASignalToEndThatItsWorkerGotTooIsNoKilledRank) {
  Launch launch = LaunchOf({kHere, Loss::kTold, kHere}, 3);
  launch.evidence[1].state = ProcessState::kSignalled;
  launch.evidence[1].signal = 15;
  launch.judgement = Judge(launch.evidence, 30);
  const Finding* const finding = Named(launch);
  ASSERT_EQ(launch.judgement.findings.size(), 1u);
  EXPECT_EQ(finding->cause, Cause::kAgentLost);
  EXPECT_EQ(finding->evidence.at(0).cause, Cause::kRankKilled) << "nothing is forgotten";
  EXPECT_EQ(launch.judgement.outcomes[1].outcome, Outcome::kKilled);
  EXPECT_EQ(launch.judgement.verdict, Verdict::kUnknown) << "nothing was tested";
}

TEST(LostAgents, AnAgentThatOnlyDoesNotAnswerIsNotCalledEnded) {
  for (const Loss loss : {kCutOff, kDeaf}) {
    Launch launch = LaunchOf({kHere, loss, kHere}, 3);
    const Finding* const finding = Named(launch);
    ASSERT_NE(finding, nullptr);
    EXPECT_EQ(finding->cause, Cause::kUnknown);
  }
}

TEST(LostAgents, RanksOfWhichNoHostIsKnownAreNoHost) {
  Launch launch = LaunchOf({kClosed, kHere, kCutOff}, 1);
  launch.places[0].host = launch.places[2].host = "";
  const Finding* const finding = Named(launch);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, Cause::kAgentLost);
  EXPECT_EQ(finding->culprits, (std::vector<int>{0}));
  EXPECT_EQ(launch.judgement.outcomes[2].outcome, Outcome::kHung);
}

TEST(LostAgents, WhoIsToldToEndIsNoHostThatIsCutOff) {
  Launch launch = LaunchOf({kHere, kHere, Loss::kTold, Loss::kTold});
  const Finding* const finding = Named(launch);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, Cause::kAgentLost);
  EXPECT_NE(finding->message.find("were told to end by a signal"), std::string::npos)
      << finding->message;
}

TEST(LostHosts, AllRanksOfAHostStopped) {
  Launch launch = LaunchOf({kHere, kHere, kHere, kHere});
  for (const std::size_t rank : {2u, 3u}) {
    launch.evidence[rank].state = ProcessState::kStopped;
    launch.evidence[rank].signal = 19;
  }
  launch.judgement = Judge(launch.evidence, 30);
  const Finding* const finding = Named(launch);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cause, Cause::kHostStopped);
  EXPECT_TRUE(finding->proved);
  EXPECT_EQ(finding->evidence.front().cause, Cause::kRankStopped);
  // One of two is a stopped rank, and all hosts alike is job control.
  launch.evidence[2].state = ProcessState::kRunning;
  launch.judgement = Judge(launch.evidence, 30);
  ASSERT_NE(Named(launch), nullptr);
  EXPECT_EQ(launch.judgement.findings.front().cause, Cause::kRankStopped);
  for (RankEvidence& evidence : launch.evidence) {
    evidence.state = ProcessState::kStopped;
    evidence.signal = 19;
  }
  launch.judgement = Judge(launch.evidence, 30);
  ASSERT_NE(Named(launch), nullptr);
  EXPECT_EQ(launch.judgement.findings.front().cause, Cause::kRankStopped);
}

}  // namespace
}  // namespace lockstep::verdict
