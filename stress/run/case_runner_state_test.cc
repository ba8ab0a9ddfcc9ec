// The phases of a case.
#include <utility>

#include "gtest/gtest.h"
#include "stress/run/case_state.h"

namespace lockstep::stress::run {
namespace {

TEST(CaseState, ARecoveryLeadsBackToWhereItBegan) {
  CaseState state;
  for (const auto& [turn, phase] : {std::pair(Turn::kFailureSeen, Phase::kAborting),
                                    std::pair(Turn::kAborted, Phase::kAwaitingRanks),
                                    std::pair(Turn::kRanksReady, Phase::kConnecting),
                                    std::pair(Turn::kLostAgain, Phase::kWatching)}) {
    state.Take(turn);
    EXPECT_EQ(state.phase, phase);
  }
}

TEST(CaseState, AnythingEndsAndNothingLeadsOn) {
  for (const Transition& transition : kTransitions) {
    CaseState state;
    state.phase = transition.from;
    state.Take(Turn::kEnded);
    EXPECT_TRUE(state.over());
    state.Take(transition.turn);
    EXPECT_TRUE(state.over());
  }
}

TEST(CaseState, WhatCutsACaseShortEndsIt) {
  CaseState state;
  state.CutShort("ended by a signal");
  EXPECT_TRUE(state.over());
  EXPECT_EQ(state.cut_short, "ended by a signal");
}

TEST(CaseStateDeathTest, ATurnThatThePhaseDoesNotAllowIsOurMistake) {
  CaseState state;
  EXPECT_DEATH(state.Take(Turn::kAborted), "a turn that the phase allows");
}

}  // namespace
}  // namespace lockstep::stress::run
