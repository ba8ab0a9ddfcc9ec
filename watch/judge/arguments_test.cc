// Arguments that are wrong whatever the other ranks do, and those that only look so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Literal = LiteralHistory;

template <typename Change>
std::vector<std::string> Causes(Event event, Change change) {
  LiteralHistory history(2);
  change(event);
  history.Open(0, event);
  std::vector<std::string> causes;
  for (const Finding& finding : history.judge().Tell()) causes.emplace_back(NameOf(finding.cause));
  return causes;
}

TEST(Arguments, OfASend) {
  const Event send = Literal::Sends(Call::kSend, 3, 1);
  EXPECT_THAT(Causes(send, [](Event&) {}), IsEmpty());
  EXPECT_THAT(Causes(send, [](Event& e) { e.peer = events::kProcNull; }), IsEmpty());
  EXPECT_THAT(Causes(send, [](Event& e) { e.peer = 2; }), ElementsAre("invalid_rank"));
  EXPECT_THAT(Causes(send, [](Event& e) { e.peer = -1; }), ElementsAre("invalid_rank"));
  EXPECT_THAT(Causes(send, [](Event& e) { e.tag = -1; }), ElementsAre("invalid_tag"));
  EXPECT_THAT(Causes(send, [](Event& e) { e.count = -1; }), ElementsAre("invalid_count"));
  EXPECT_THAT(Causes(send, [](Event& e) { e.comm = events::kNullComm; }),
              ElementsAre("invalid_communicator"));
  EXPECT_THAT(Causes(send, [](Event& e) { e.comm = events::kFreedComm; }),
              ElementsAre("invalid_communicator"));
  EXPECT_THAT(Causes(send, [](Event& e) { e.comm = events::kUnknownComm; }), IsEmpty());
  for (const auto type : {events::kNullType, events::kFreedType, events::kUncommittedType}) {
    EXPECT_THAT(Causes(send, [&](Event& e) { e.type = type; }), ElementsAre("invalid_datatype"));
  }
}

TEST(Arguments, WildcardsAreForReceives) {
  const Event receive = Literal::Receives(Call::kRecv, 3, 1);
  EXPECT_THAT(Causes(receive, [](Event& e) { e.peer = events::kAnySource; }), IsEmpty());
  EXPECT_THAT(Causes(receive, [](Event& e) { e.tag = events::kAnyTag; }), IsEmpty());
  EXPECT_THAT(Causes(receive, [](Event& e) { e.tag = -2; }), ElementsAre("invalid_tag"));
  const Event send = Literal::Sends(Call::kSend, 3, 1);
  EXPECT_THAT(Causes(send, [](Event& e) { e.tag = events::kAnyTag; }), ElementsAre("invalid_tag"));
}

TEST(Arguments, OfACollective) {
  Event reduce = Literal::Asks(Call::kReduce, 3);
  reduce.peer = 1;
  reduce.tag = 2;
  reduce.type = kInt;
  EXPECT_THAT(Causes(reduce, [](Event&) {}), IsEmpty());
  EXPECT_THAT(Causes(reduce, [](Event& e) { e.peer = 2; }), ElementsAre("invalid_root"));
  EXPECT_THAT(Causes(reduce, [](Event& e) { e.peer = -1; }), ElementsAre("invalid_root"));
  EXPECT_THAT(Causes(reduce, [](Event& e) { e.tag = events::kNullOp; }),
              ElementsAre("invalid_operator"));
  EXPECT_THAT(
      Causes(Literal::Asks(Call::kComm_split, 3), [](Event& e) { e.flags = events::kBadArgument; }),
      ElementsAre("invalid_argument"));
  EXPECT_THAT(
      Causes(Literal::Asks(Call::kCart_get, 3), [](Event& e) { e.flags = events::kBadArgument; }),
      ElementsAre("invalid_communicator"));
}

TEST(Arguments, TheMessageSaysWhoWhatAndWhere) {
  LiteralHistory history(2);
  history.Open(1, Literal::Sends(Call::kSend, 3, 5));
  EXPECT_THAT(history.Findings(),
              ElementsAre("invalid_rank: rank 1 gives MPI_Send rank 5 of 2 at line 3"));
}

}  // namespace
}  // namespace lockstep::watch::judge
