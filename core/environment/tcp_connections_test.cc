// Connections of this process with itself: what passes is counted, and only where it passes.
#include "core/environment/tcp_connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cmath>
#include <string>

#include "core/base/fd.h"

namespace lockstep::environment {
namespace {

struct Pair {
  Fd client, server;
};

Pair Connect() {
  const Fd listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* name = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener.get(), name, size), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), name, &size), 0);
  Pair pair;
  pair.client = Fd(socket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(connect(pair.client.get(), name, size), 0);
  pair.server = Fd(accept(listener.get(), nullptr, nullptr));
  return pair;
}

void Pass(const Fd& from, const Fd& to, std::size_t bytes) {
  std::string data(bytes, 'x');
  EXPECT_EQ(send(from.get(), data.data(), bytes, 0), static_cast<ssize_t>(bytes));
  EXPECT_EQ(recv(to.get(), data.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
}

TEST(TcpConnections, KnowsWhatPassedAndWhere) {
  TcpConnections connections;
  const Pair first = Connect(), second = Connect();
  connections.Find();
  EXPECT_TRUE(std::isnan(connections.Carried(1).least_round_trip_s)) << "nothing passed";
  Pass(first.client, first.server, 100'000);
  Pass(second.client, second.server, 100);
  const TcpConnections::Traffic traffic = connections.Carried(50'000);
  EXPECT_GT(traffic.least_round_trip_s, 0);
  EXPECT_GT(traffic.segments, 1u);
  EXPECT_LE(traffic.segments, 100u);
  EXPECT_EQ(traffic.lost, 0u);
  EXPECT_TRUE(std::isnan(connections.Carried(50'000).least_round_trip_s)) << "nothing since";
}

TEST(TcpConnections, WhatPassedBeforeDoesNotCount) {
  TcpConnections connections;
  const Pair pair = Connect();
  connections.Find();
  Pass(pair.client, pair.server, 1000);
  connections.Find();
  EXPECT_TRUE(std::isnan(connections.Carried(500).least_round_trip_s));
}

TEST(TcpConnections, OneThatIsMadeLaterIsFoundAndOneThatIsClosedForgotten) {
  TcpConnections connections;
  connections.Find();
  {
    const Pair pair = Connect();
    Pass(pair.client, pair.server, 1000);
    EXPECT_TRUE(std::isnan(connections.Carried(500).least_round_trip_s)) << "not found yet";
    connections.Find();
    Pass(pair.server, pair.client, 1000);
    EXPECT_GT(connections.Carried(500).least_round_trip_s, 0);
  }
  EXPECT_TRUE(std::isnan(connections.Carried(1).least_round_trip_s));
  const Pair again = Connect();  // of the same descriptors
  connections.Find();
  Pass(again.client, again.server, 1000);
  EXPECT_GT(connections.Carried(500).least_round_trip_s, 0);
}

}  // namespace
}  // namespace lockstep::environment
