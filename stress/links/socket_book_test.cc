// Looks at sockets at stated times: when bytes came is known between two looks, or not at all.
#include "stress/links/socket_book.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep::stress::links {
namespace {

verdict::TcpSocket Socket(std::uint64_t written, std::uint64_t received = 0) {
  verdict::TcpSocket socket;
  socket.local = "a:1";
  socket.remote = "b:2";
  socket.written = written;
  socket.received = received;
  return socket;
}

SocketBook::Look LookAt(double began_s, double took_s = 0.001, double waited_s = 0) {
  return {began_s, began_s + took_s, waited_s};
}

verdict::TcpSocket Only(const SocketBook& book) {
  EXPECT_EQ(book.Connections().size(), 1u);
  return book.Connections().at(0);
}

TEST(SocketBook, AStepLiesBetweenTheLookBeforeAndThisOne) {
  SocketBook book;
  book.Note({Socket(0)}, LookAt(10));
  book.Note({Socket(0)}, LookAt(11));
  verdict::TcpSocket socket = Socket(100, 7);
  socket.limited_s = 0.25;
  socket.round_trip_us = 2000;
  book.Note({socket}, LookAt(12, 0.001, 0.5));
  const verdict::TcpSocket seen = Only(book);
  ASSERT_EQ(seen.written_steps.size(), 2u);
  EXPECT_EQ(seen.written_steps[0].bytes, 0u);
  const verdict::ByteStep& step = seen.written_steps[1];
  EXPECT_EQ(step.bytes, 100u);
  EXPECT_DOUBLE_EQ(step.after_s, 11);
  EXPECT_DOUBLE_EQ(step.by_s, 12.001);
  EXPECT_DOUBLE_EQ(step.waited_s, 0.5);
  EXPECT_DOUBLE_EQ(step.limited_s, 0.25);
  EXPECT_DOUBLE_EQ(step.round_trip_s, 0.002);
  ASSERT_EQ(seen.received_steps.size(), 2u);
  EXPECT_EQ(seen.received_steps[1].bytes, 7u);
  EXPECT_EQ(seen.arrivals, 1u);
  EXPECT_DOUBLE_EQ(seen.waited_s, 0.5);
}

// It shows no one moment: what it saw is dated by the next one.
TEST(SocketBook, ALookThatTookLongIsDropped) {
  SocketBook book;
  book.Note({Socket(0)}, LookAt(10));
  book.Note({Socket(50)}, LookAt(11, verdict::kLongestLookSeconds * 1.01));
  EXPECT_EQ(Only(book).written_steps.size(), 1u);
  book.Note({Socket(50)}, LookAt(12));
  const verdict::TcpSocket seen = Only(book);
  ASSERT_EQ(seen.written_steps.size(), 2u);
  EXPECT_DOUBLE_EQ(seen.written_steps[1].after_s, 10);
  EXPECT_DOUBLE_EQ(seen.written_steps[1].by_s, 12.001);
}

// It may have been there at earlier looks, which did not find it yet.
TEST(SocketBook, OfANewOneItIsNotKnownWhenItsBytesCame) {
  SocketBook book;
  book.Note({}, LookAt(9));
  book.Note({Socket(40)}, LookAt(10));
  book.Note({Socket(50)}, LookAt(11));
  const std::vector<verdict::ByteStep> steps = Only(book).written_steps;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_DOUBLE_EQ(steps[0].after_s, 0);
  EXPECT_DOUBLE_EQ(steps[1].after_s, 10);
}

TEST(SocketBook, OneThatIsGoneStaysKnownAndItsPortCanBeUsedAgain) {
  SocketBook book;
  book.Note({Socket(100, 100)}, LookAt(10));
  book.Note({Socket(200, 200)}, LookAt(11));
  book.Note({}, LookAt(12));
  EXPECT_TRUE(Only(book).closed);
  EXPECT_EQ(Only(book).written, 200u);
  book.Note({Socket(30, 0)}, LookAt(13));
  const verdict::TcpSocket again = Only(book);
  EXPECT_FALSE(again.closed);
  EXPECT_EQ(again.arrivals, 0u);
  ASSERT_EQ(again.written_steps.size(), 1u);
  EXPECT_EQ(again.written_steps[0].bytes, 30u);
}

TEST(SocketBook, TheNewestStepsAreKept) {
  SocketBook book;
  for (int i = 1; i <= 1000; ++i) book.Note({Socket(static_cast<std::uint64_t>(i))}, LookAt(i));
  const std::vector<verdict::ByteStep> steps = Only(book).written_steps;
  ASSERT_EQ(steps.size(), 64u);
  EXPECT_EQ(steps.back().bytes, 1000u);
  EXPECT_EQ(steps.front().bytes, 937u);
}

TEST(SocketBook, WhatARelayWasToldIsKeptAsItGrows) {
  SocketBook book;
  for (const auto& [bytes, byte_s] : {std::pair(10, 0.0), std::pair(10, 0.0), std::pair(30, 0.4)}) {
    verdict::TcpSocket socket = Socket(static_cast<std::uint64_t>(bytes));
    socket.relayed = true;
    socket.out = {{{static_cast<std::uint64_t>(bytes), byte_s}}, 2};
    book.Note({socket}, LookAt(10 + byte_s));
  }
  const verdict::TcpSocket seen = Only(book);
  EXPECT_TRUE(seen.relayed);
  EXPECT_EQ(seen.out.lost, 2u);
  ASSERT_EQ(seen.out.told.size(), 3u);
  EXPECT_EQ(seen.out.told[0].bytes, 0u);
  EXPECT_EQ(seen.out.told[2].bytes, 30u);
  EXPECT_DOUBLE_EQ(seen.out.told[2].byte_s, 0.4);
}

}  // namespace
}  // namespace lockstep::stress::links
