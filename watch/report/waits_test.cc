// Who waited for whom, of events that are written down. A tick is a nanosecond here; a site is a
// line of an imagined program.
#include "watch/report/waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "watch/report/record.h"

namespace lockstep::watch::report {
namespace {

using events::Phase;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kHalf = 4711;  // a communicator

struct Message {
  int peer = 0;
  int tag = 0;
};

class Program {
 public:
  explicit Program(int size, std::size_t traced = 100) : waits_(size, traced), size_(size) {
    for (int rank = 0; rank < size; ++rank) Member(rank, events::kWorldComm, rank, size);
  }

  static Event Of(Phase phase, Call call, std::uint64_t ticks, int line = 0) {
    Event event;
    event.phase = phase;
    event.call = call;
    event.ticks = ticks;
    event.site = static_cast<std::uint64_t>(line);
    event.thread = 1;
    event.comm = events::kWorldComm;
    event.peer = events::kNoRoot;
    event.tag = events::kNoOp;
    return event;
  }

  void Member(int rank, std::uint64_t comm, int me, int size, Call made_by = Call::kInit,
              int line = 0, std::uint32_t number = 0) {
    Event event = Of(Phase::kMade, made_by, 1, line);
    event.comm = comm;
    event.peer = me;
    event.count = size;
    event.request = number;
    waits_.Take(rank, event);
  }
  void Frees(int rank, std::uint32_t number) {
    Event event = Of(Phase::kFreed, Call::kNone, 1);
    event.request = number;
    waits_.Take(rank, event);
  }

  Event Collective(Call call, std::uint64_t entered, int line, int root = events::kNoRoot,
                   std::uint64_t comm = events::kWorldComm) {
    Event event = Of(Phase::kEnter, call, entered, line);
    event.peer = root;
    event.comm = comm;
    return event;
  }
  Event Talk(Call call, std::uint64_t entered, int line, Message message,
             std::uint32_t request = 0) {
    Event event = Of(Phase::kEnter, call, entered, line);
    event.peer = message.peer;
    event.tag = message.tag;
    event.request = request;
    const bool receives = call == Call::kRecv || call == Call::kIrecv || call == Call::kRecv_init;
    event.flags = receives ? events::kReceiving : 0;
    if (call == Call::kRecv_init || call == Call::kSend_init) event.flags |= events::kPersistent;
    if (call == Call::kBsend) event.flags = events::kBuffered;
    return event;
  }
  void Take(int rank, const Event& event) { waits_.Take(rank, event); }
  void Leave(int rank, Call call, std::uint64_t left) { Take(rank, Of(Phase::kLeave, call, left)); }
  void Call_(int rank, const Event& event, std::uint64_t left) {
    Take(rank, event);
    Leave(rank, event.call, left);
  }
  // A receive that got the message of `source`.
  void Got(int rank, const Event& receive, std::uint64_t left, Message from) {
    Take(rank, receive);
    Over(rank, receive.call, 0, left, from);
    Leave(rank, receive.call, left);
  }
  void Over(int rank, Call call, std::uint32_t request, std::uint64_t ticks, Message from) {
    Event event = Of(Phase::kDone, call, ticks);
    event.request = request;
    event.peer = from.peer;
    event.tag = from.tag;
    Take(rank, event);
  }
  void Uses(int rank, Call call, std::uint64_t ticks, std::uint32_t request) {
    Event part = Of(Phase::kPart, call, ticks);
    part.request = request;
    Take(rank, part);
  }
  // A Wait that ends `requests`; `from`: of the last one.
  void Waits_(int rank, std::uint64_t entered, std::uint64_t left, int line,
              std::initializer_list<std::uint32_t> requests, Message from = {}) {
    for (const std::uint32_t request : requests) Uses(rank, Call::kWaitall, entered, request);
    Take(rank, Of(Phase::kEnter, Call::kWaitall, entered, line));
    for (const std::uint32_t request : requests) Over(rank, Call::kWaitall, request, left, from);
    Leave(rank, Call::kWaitall, left);
  }

  results::store::Watched Record_() const {
    return Record(waits_, {0, 1}, std::vector<RankProcess>(static_cast<std::size_t>(size_)),
                  [](int, std::uint64_t site) { return "line " + std::to_string(site); });
  }
  // "0 for 1: 50 ns, 1 times, MPI_Barrier at line 7", one a pair and place.
  std::vector<std::string> Told() const {
    const results::store::Watched watched = Record_();
    std::vector<std::string> told;
    for (const results::store::WaitedFor& blame : watched.blamed) {
      const auto& place = watched.places[static_cast<std::size_t>(blame.place)];
      told.push_back(std::to_string(place.rank) + " for " + std::to_string(blame.rank) + ": " +
                     std::to_string(static_cast<int>(blame.waited_ns)) + " ns, " +
                     std::to_string(blame.times) + " times, " + place.call + " at " + place.site);
    }
    std::sort(told.begin(), told.end());
    return told;
  }
  std::vector<std::int64_t> CameLast() const {
    std::vector<std::int64_t> came(static_cast<std::size_t>(size_));
    for (const auto& place : Record_().places) {
      came[static_cast<std::size_t>(place.rank)] += place.came_last;
    }
    return came;
  }
  std::vector<std::int64_t> Uncounted() const {
    std::vector<std::int64_t> found;
    for (const auto& rank : Record_().ranks) found.push_back(rank.uncounted);
    return found;
  }

 private:
  Waits waits_;
  int size_;
};

TEST(Waits, TheLastToEnterMakesTheOthersWait) {
  Program program(3);
  for (const auto& [rank, entered] : {std::pair(0, 100), std::pair(1, 150), std::pair(2, 400)}) {
    program.Call_(rank, program.Collective(Call::kBarrier, static_cast<std::uint64_t>(entered), 7),
                  410);
  }
  EXPECT_THAT(program.Told(), ElementsAre("0 for 2: 300 ns, 1 times, MPI_Barrier at line 7",
                                          "1 for 2: 250 ns, 1 times, MPI_Barrier at line 7"));
  EXPECT_THAT(program.CameLast(), ElementsAre(0, 0, 1));
}

TEST(Waits, TheOrderInWhichRanksAreReadIsNoMatter) {
  Program together(2);
  Program apart(2);
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (int rank = 0; rank < 2; ++rank) {
      const std::uint64_t entered = 1000 * round + (rank == 0 ? 10 : 40);
      together.Call_(rank, together.Collective(Call::kAllreduce, entered, 3), 1000 * round + 50);
    }
  }
  for (const int rank : {1, 0}) {
    for (std::uint64_t round = 0; round < 10; ++round) {
      const std::uint64_t entered = 1000 * round + (rank == 0 ? 10 : 40);
      apart.Call_(rank, apart.Collective(Call::kAllreduce, entered, 3), 1000 * round + 50);
    }
  }
  EXPECT_EQ(together.Told(), apart.Told());
  EXPECT_THAT(apart.Told(), ElementsAre("0 for 1: 300 ns, 10 times, MPI_Allreduce at line 3"));
  EXPECT_THAT(apart.CameLast(), ElementsAre(0, 10));
}

TEST(Waits, OnlyRanksThatAreNeededAreWaitedFor) {
  const auto told = [](Call call, int root, std::initializer_list<int> entered) {
    Program program(3);
    int rank = 0;
    for (const int ticks : entered) {
      program.Call_(rank++, program.Collective(call, static_cast<std::uint64_t>(ticks), 5, root),
                    900);
    }
    return program.Told();
  };
  // Of a broadcast the root alone; it waits for nobody.
  EXPECT_THAT(told(Call::kBcast, 1, {100, 200, 500}),
              ElementsAre("0 for 1: 100 ns, 1 times, MPI_Bcast at line 5"));
  // In a reduction the root waits for all, and nobody else does.
  EXPECT_THAT(told(Call::kReduce, 1, {100, 200, 500}),
              ElementsAre("1 for 2: 300 ns, 1 times, MPI_Reduce at line 5"));
  // A scan needs lower ranks.
  EXPECT_THAT(told(Call::kScan, events::kNoRoot, {300, 200, 100}),
              ElementsAre("1 for 0: 100 ns, 1 times, MPI_Scan at line 5",
                          "2 for 0: 200 ns, 1 times, MPI_Scan at line 5"));
}

TEST(Waits, NobodyWaitsForWhatHappensLater) {
  Program program(2);
  // Without data an alltoall may return before all are there.
  program.Call_(0, program.Collective(Call::kAlltoallv, 100, 5), 120);
  program.Call_(1, program.Collective(Call::kAlltoallv, 300, 5), 310);
  // A send that the library buffers.
  program.Call_(0, program.Talk(Call::kSend, 400, 6, {1, 0}), 410);
  program.Got(1, program.Talk(Call::kRecv, 500, 7, {0, 0}), 510, {0, 0});
  EXPECT_THAT(program.Told(), IsEmpty());
  EXPECT_THAT(program.CameLast(), ElementsAre(0, 1));
}

TEST(Waits, LateSenderAndLateReceiver) {
  for (const bool sender_first : {false, true}) {
    Program program(2);
    const auto sends = [&] {
      program.Call_(0, program.Talk(Call::kSend, 300, 6, {1, 5}), 310);
      program.Call_(0, program.Talk(Call::kSsend, 400, 8, {1, 5}), 710);
    };
    if (sender_first) sends();
    program.Got(1, program.Talk(Call::kRecv, 100, 7, {events::kAnySource, events::kAnyTag}), 320,
                {0, 5});
    program.Got(1, program.Talk(Call::kRecv, 700, 9, {0, 5}), 705, {0, 5});
    if (!sender_first) sends();
    EXPECT_THAT(program.Told(), ElementsAre("0 for 1: 300 ns, 1 times, MPI_Ssend at line 8",
                                            "1 for 0: 200 ns, 1 times, MPI_Recv at line 7"));
  }
}

TEST(Waits, TagsAndCommunicatorsKeepMessagesApart) {
  Program program(2);
  program.Got(1, program.Talk(Call::kRecv, 100, 7, {0, 2}), 600, {0, 2});
  program.Call_(0, program.Talk(Call::kSend, 200, 6, {1, 1}), 210);
  program.Call_(0, program.Talk(Call::kSend, 500, 6, {1, 2}), 510);
  EXPECT_THAT(program.Told(), ElementsAre("1 for 0: 400 ns, 1 times, MPI_Recv at line 7"));
}

TEST(Waits, NonBlockingCallsCountInTheirWait) {
  Program program(2);
  program.Call_(0, program.Talk(Call::kIrecv, 100, 3, {1, 0}, 1), 105);
  program.Call_(0, program.Collective(Call::kIallreduce, 110, 4), 115);
  program.Waits_(0, 200, 900, 5, {1}, {1, 0});
  program.Call_(1, program.Talk(Call::kIsend, 800, 6, {0, 0}, 1), 805);
  program.Waits_(1, 810, 815, 7, {1});
  EXPECT_THAT(program.Told(), ElementsAre("0 for 1: 600 ns, 1 times, MPI_Waitall at line 5"));
}

TEST(Waits, ASendAndAReceiveInOneRequestBothCount) {
  Program program(2);
  Event send = program.Talk(Call::kIsendrecv, 100, 3, {1, 0}, 2);
  send.phase = Phase::kPart;
  program.Take(0, send);
  Event receive = program.Talk(Call::kIsendrecv, 100, 3, {1, 0}, 1);
  receive.flags = events::kReceiving;
  program.Call_(0, receive, 105);
  program.Waits_(0, 200, 900, 5, {1, 2}, {1, 0});
  program.Call_(1, program.Talk(Call::kSend, 300, 6, {0, 0}), 305);
  program.Got(1, program.Talk(Call::kRecv, 800, 7, {0, 0}), 805, {0, 0});
  EXPECT_THAT(program.Told(), ElementsAre("0 for 1: 600 ns, 1 times, MPI_Waitall at line 5"));
}

TEST(Waits, APostedCollectiveIsNeededOnlyInItsWait) {
  for (const bool last_first : {false, true}) {
    Program program(2);
    const auto posts = [&](int rank, std::uint64_t at) {
      Event event = program.Collective(Call::kIallreduce, at, 4);
      event.request = 9;
      program.Call_(rank, event, at + 5);
    };
    if (last_first) posts(1, 500);
    posts(0, 100);
    program.Waits_(0, 300, 700, 5, {9});
    if (!last_first) posts(1, 500);
    program.Waits_(1, 510, 700, 6, {9});
    EXPECT_THAT(program.Told(), ElementsAre("0 for 1: 200 ns, 1 times, MPI_Waitall at line 5"));
    EXPECT_THAT(program.Uncounted(), ElementsAre(0, 0));
  }
}

TEST(Waits, PersistentRequestsBelongToTheirStart) {
  Program program(2);
  program.Call_(0, program.Talk(Call::kRecv_init, 10, 3, {1, 0}, 1), 11);
  for (const std::uint64_t round : {1000u, 2000u}) {
    program.Uses(0, Call::kStart, round, 1);
    program.Call_(0, Program::Of(Phase::kEnter, Call::kStart, round, 4), round + 1);
    program.Waits_(0, round + 10, round + 100, 5, {1}, {1, 0});
    program.Call_(1, program.Talk(Call::kSend, round + 60, 6, {0, 0}), round + 65);
  }
  EXPECT_THAT(program.Told(), ElementsAre("0 for 1: 100 ns, 2 times, MPI_Waitall at line 5"));
}

TEST(Waits, TheLastOfSeveralRequestsCounts) {
  Program program(3);
  program.Call_(0, program.Talk(Call::kIrecv, 100, 3, {1, 0}, 1), 101);
  program.Call_(0, program.Talk(Call::kIrecv, 110, 3, {2, 0}, 2), 111);
  program.Uses(0, Call::kWaitall, 200, 1);
  program.Uses(0, Call::kWaitall, 200, 2);
  program.Take(0, Program::Of(Phase::kEnter, Call::kWaitall, 200, 5));
  program.Over(0, Call::kWaitall, 1, 900, {1, 0});
  program.Over(0, Call::kWaitall, 2, 900, {2, 0});
  program.Leave(0, Call::kWaitall, 900);
  program.Call_(1, program.Talk(Call::kSend, 800, 6, {0, 0}), 805);
  program.Call_(2, program.Talk(Call::kSend, 400, 6, {0, 0}), 405);
  EXPECT_THAT(program.Told(), ElementsAre("0 for 1: 600 ns, 1 times, MPI_Waitall at line 5"));
}

TEST(Waits, CommunicatorsAreNamedByWhereTheyWereMade) {
  Program program(2);
  for (const int rank : {0, 1}) program.Member(rank, kHalf, rank, 2, Call::kComm_split, 12, 5);
  program.Call_(0, program.Collective(Call::kBarrier, 100, 7, events::kNoRoot, kHalf), 210);
  program.Call_(1, program.Collective(Call::kBarrier, 200, 7, events::kNoRoot, kHalf), 210);
  const results::store::Watched watched = program.Record_();
  ASSERT_EQ(watched.places.size(), 2u);
  EXPECT_EQ(watched.places[0].communicator, "MPI_Comm_split at line 12");
  // Freed by both, it is forgotten, and the next one may have its name.
  for (const int rank : {0, 1}) program.Frees(rank, 5);
  for (const int rank : {0, 1}) program.Member(rank, kHalf, rank, 2, Call::kComm_dup, 13, 6);
  program.Call_(0, program.Collective(Call::kBarrier, 300, 8, events::kNoRoot, kHalf), 410);
  program.Call_(1, program.Collective(Call::kBarrier, 400, 8, events::kNoRoot, kHalf), 410);
  EXPECT_EQ(program.Record_().places[1].communicator, "MPI_Comm_dup at line 13");
}

TEST(Waits, FinalizeWaitsForAll) {
  Program program(2);
  for (const auto& [rank, entered] : {std::pair(0, 100), std::pair(1, 300)}) {
    Event event =
        Program::Of(Phase::kEnter, Call::kFinalize, static_cast<std::uint64_t>(entered), 9);
    event.comm = events::kNullComm;
    program.Call_(rank, event, 350);
  }
  EXPECT_THAT(program.Told(), ElementsAre("0 for 1: 200 ns, 1 times, MPI_Finalize at line 9"));
}

TEST(Waits, WhatHasNoPartnerIsNotCounted) {
  Program program(2);
  program.Call_(0, program.Collective(Call::kBcast, 100, 5, 0), 110);
  program.Call_(0, program.Talk(Call::kSend, 200, 6, {1, 0}), 210);
  program.Take(0, program.Collective(Call::kBarrier, 300, 7));  // never returns
  EXPECT_THAT(program.Told(), IsEmpty());
  EXPECT_THAT(program.Uncounted(), ElementsAre(2, 0));
}

TEST(Waits, TheNewestCallsAreKept) {
  Program program(2, 3);
  for (std::uint64_t round = 1; round <= 10; ++round) {
    for (const int rank : {0, 1}) {
      program.Call_(rank, program.Collective(Call::kBarrier, 100 * round, 3), 100 * round + 50);
    }
  }
  const results::store::Watched watched = program.Record_();
  ASSERT_EQ(watched.calls.size(), 6u);
  EXPECT_EQ(watched.calls[0].entered_ns, 800);
  EXPECT_EQ(watched.calls[2].entered_ns, 1000);
  EXPECT_EQ(watched.ranks[0].calls, 10);
  EXPECT_EQ(watched.places[0].calls, 10);
}

}  // namespace
}  // namespace lockstep::watch::report
