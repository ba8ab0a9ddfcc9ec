// Requests and what else a program makes: finished, freed, started once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using events::Object;
using testing::ElementsAre;
using testing::IsEmpty;
using Literal = LiteralHistory;

TEST(Requests, FinishedOrNot) {
  for (const bool waits : {true, false}) {
    LiteralHistory history(1);
    Event barrier = Literal::Asks(Call::kIbarrier, 3);
    history.Posts(0, barrier, 1);
    if (waits) history.Waits(0, 4, 1);
    history.Finalizes(0);
    EXPECT_EQ(history.Findings(),
              waits ? std::vector<std::string>{}
                    : std::vector<std::string>{
                          "unfinished_request: rank 0 never waits for its MPI_Ibarrier at line 3"});
  }
}

// Of a message that MPI_Improbe took: it is there, so nobody is needed.
TEST(Requests, ThoseOfProbedMessagesAreFinishedToo) {
  for (const bool waits : {true, false}) {
    LiteralHistory history(1);
    history.Posts(0, Literal::Asks(Call::kImrecv, 3), 1);
    if (waits) history.Waits(0, 4, 1, 0);
    history.Finalizes(0);
    EXPECT_EQ(history.Findings(),
              waits ? std::vector<std::string>{}
                    : std::vector<std::string>{
                          "unfinished_request: rank 0 never waits for its MPI_Imrecv at line 3"});
  }
}

TEST(Requests, OneThatIsFreedIsNotMissed) {
  LiteralHistory history(2);
  history.Posts(0, Literal::Sends(Call::kIsend, 1, 1), 1);
  history.OpenOn(0, Call::kRequest_free, 2, {1});
  history.Left(0, Call::kRequest_free);
  history.Got(1, Literal::Receives(Call::kRecv, 3, 0), 0);
  history.Finalizes(0);
  history.Finalizes(1);
  EXPECT_THAT(history.Causes(), IsEmpty());
}

TEST(Requests, OneThatTheLibraryDoesNotFreeStays) {
  LiteralHistory history(2);
  history.Posts(0, Literal::Receives(Call::kIrecv, 1, 1), 1);
  history.OpenOn(0, Call::kRequest_free, 2, {1});
  Event refused = Literal::Asks(Call::kRequest_free, 0);
  refused.phase = events::Phase::kLeave;
  refused.peer = 19;
  history.judge().Take(0, refused);
  history.Finalizes(0);
  EXPECT_THAT(history.Causes(), ElementsAre("unfinished_request"));
}

class Persistent : public testing::Test {
 protected:
  Persistent() { history_.Posts(0, Literal::Sends(Call::kSend_init, 1, 1), 1); }
  void Starts() {
    history_.OpenOn(0, Call::kStart, 2, {1});
    history_.Left(0, Call::kStart);
  }
  void FreesAndEnds(int messages) {
    history_.OpenOn(0, Call::kRequest_free, 5, {1});
    history_.Left(0, Call::kRequest_free);
    for (int each = 0; each < messages; ++each) {
      history_.Got(1, Literal::Receives(Call::kRecv, 3, 0), 0);
    }
    history_.Finalizes(0);
    history_.Finalizes(1);
  }
  LiteralHistory history_{2, {.leaks = true}};
};

TEST_F(Persistent, StartedTwiceInARowAndTwiceWithAWait) {
  Starts();
  history_.Waits(0, 4, 1);
  Starts();
  history_.Waits(0, 4, 1);
  FreesAndEnds(2);
  EXPECT_THAT(history_.Causes(), IsEmpty());
}

TEST_F(Persistent, StartedWhileItRuns) {
  Starts();
  Starts();
  EXPECT_THAT(history_.Causes(), ElementsAre("started_twice"));
}

TEST_F(Persistent, NeverFreed) {
  Starts();
  history_.Waits(0, 4, 1);
  history_.Got(1, Literal::Receives(Call::kRecv, 3, 0), 0);
  history_.Finalizes(0);
  history_.Finalizes(1);
  EXPECT_THAT(history_.Findings(),
              ElementsAre("request_leak: rank 0 never frees its MPI_Send_init of line 1"));
}

TEST_F(Persistent, NeverStartedAndTheReceiverWaits) {
  history_.Waits(0, 4, 1);
  history_.Open(0, Literal::Receives(Call::kRecv, 6, 1));
  history_.Open(1, Literal::Receives(Call::kRecv, 3, 0));
  EXPECT_THAT(history_.Causes(), ElementsAre("never_started"));
}

TEST(PersistentOfAnotherPhase, IsNotBlamed) {
  // Rank 1 prepared a send to rank 2 for later; it and rank 0 receive from each other.
  LiteralHistory history(3);
  history.Posts(1, Literal::Sends(Call::kSend_init, 1, 2, 9), 1);
  history.Open(0, Literal::Receives(Call::kRecv, 3, 1, 7));
  history.Open(1, Literal::Receives(Call::kRecv, 5, 0, 8));
  EXPECT_THAT(history.Causes(), ElementsAre("deadlock"));
}

TEST(Objects, FreedOrNot) {
  constexpr std::pair<Object, const char*> kKinds[] = {{Object::kCommunicator, "communicator_leak"},
                                                       {Object::kDatatype, "datatype_leak"},
                                                       {Object::kOperator, "operator_leak"},
                                                       {Object::kGroup, "group_leak"},
                                                       {Object::kWindow, "window_leak"},
                                                       {Object::kFile, "file_leak"}};
  for (const auto& [object, cause] : kKinds) {
    for (const bool frees : {true, false}) {
      LiteralHistory history(1, {.leaks = true});
      history.Makes(0, object, 5, Call::kComm_dup, 3);
      history.EnterFinalize(0);
      EXPECT_THAT(history.Causes(), IsEmpty());  // callbacks may free it in MPI_Finalize
      if (frees) history.Frees(0, 5);
      history.Left(0, Call::kFinalize);
      EXPECT_EQ(history.Causes(),
                frees ? std::vector<std::string>{} : std::vector<std::string>{cause});
    }
  }
}

}  // namespace
}  // namespace lockstep::watch::judge
