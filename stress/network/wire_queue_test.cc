// Packets are given to the queue at stated times. What leaves, and when, follows from the rule.
#include "core/control/codec.h"
#include "stress/network/wire_queue.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace lockstep::stress::network {
namespace {

constexpr std::uint32_t kHere = 0x0a4d0001;   // 10.77.0.1
constexpr std::uint32_t kThere = 0x0a4d0002;  // 10.77.0.2
constexpr std::int64_t kMs = 1'000'000;

struct Flags {
  bool syn = false;
  bool ack = true;
};

std::string Packet(std::size_t payload = 100, std::uint16_t port = 4000, Flags flags = {},
                   std::uint32_t to = kThere) {
  iphdr ip{};
  tcphdr tcp{};
  ip.version = 4;
  ip.ihl = sizeof ip / 4;
  ip.protocol = IPPROTO_TCP;
  ip.tot_len = htons(static_cast<std::uint16_t>(sizeof ip + sizeof tcp + payload));
  ip.saddr = htonl(kHere);
  ip.daddr = htonl(to);
  tcp.source = htons(port);
  tcp.dest = htons(5000);
  tcp.seq = htonl(1000);
  tcp.ack_seq = htonl(7000);
  tcp.doff = sizeof tcp / 4;
  tcp.syn = flags.syn;
  tcp.ack = flags.ack;
  std::string bytes(sizeof ip + sizeof tcp + payload, 'x');
  std::memcpy(bytes.data(), &ip, sizeof ip);
  std::memcpy(bytes.data() + sizeof ip, &tcp, sizeof tcp);
  return bytes;
}

NetworkRule Rule() {
  NetworkRule rule;
  rule.id = 7;
  rule.to = {"10.77.0.2"};
  return rule;
}

// When what was put in at 0 leaves, in ms; -1: it does not within ten seconds.
double LeavesAfterMs(WireQueue& queue) {
  const auto due = queue.due_ns();
  if (!due || *due > 10'000 * kMs || !queue.Next(*due)) return -1;
  return static_cast<double>(*due) / static_cast<double>(kMs);
}

TEST(WireQueue, WithoutARuleForItAPacketLeavesAtOnce) {
  WireQueue queue;
  queue.Take(Packet(), 5);
  EXPECT_EQ(queue.Next(5)->bytes, Packet());
  NetworkRule rule = Rule();
  rule.down = true;
  queue.Add(rule, {{kHere, 4001}});
  queue.Take(Packet(100, 4000, {}, kThere + 1), 5);
  EXPECT_TRUE(queue.Next(5)) << "to another host";
  queue.Take(Packet(100, 4001), 5);
  EXPECT_TRUE(queue.Next(5)) << "of a spared connection";
  queue.Take("nothing that is a packet", 5);
  EXPECT_TRUE(queue.Next(5));
  EXPECT_THAT(queue.TakeTouched(), testing::IsEmpty());
  queue.Take(Packet(), 5);
  EXPECT_FALSE(queue.due_ns());
  EXPECT_THAT(queue.TakeTouched(), testing::ElementsAre(7));
  EXPECT_THAT(queue.TakeTouched(), testing::IsEmpty()) << "each is told of once";
  queue.Remove(7);
  queue.Take(Packet(), 5);
  EXPECT_TRUE(queue.Next(5));
}

TEST(WireQueue, DelaysAndKeepsTheOrder) {
  WireQueue queue;
  NetworkRule rule = Rule();
  rule.delay_s = 0.01;
  rule.jitter_s = 0.02;
  queue.Add(rule, {});
  for (std::size_t i = 0; i < 100; ++i) queue.Take(Packet(i), 0);
  double last = 0, sum = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    const auto due = queue.due_ns();
    ASSERT_TRUE(due);
    EXPECT_FALSE(queue.Next(*due - 1));
    EXPECT_EQ(queue.Next(*due)->bytes.size(), Packet(i).size());
    const double ms = static_cast<double>(*due) / static_cast<double>(kMs);
    EXPECT_GE(ms, std::max(last, 10.0));
    EXPECT_LE(ms, 30);
    last = ms;
    sum += ms;
  }
  EXPECT_GT(sum, 100 * 10) << "jitter";
  queue.Take(Packet(), 0);
  queue.Remove(7);
  EXPECT_EQ(LeavesAfterMs(queue), 0) << "what waits goes when it heals";
}

TEST(WireQueue, LosesAsManyAsItIsToldAndNeverThreeInARow) {
  WireQueue queue;
  NetworkRule rule = Rule();
  rule.loss = 0.2;
  queue.Add(rule, {});
  int lost = 0, in_a_row = 0, most_in_a_row = 0;
  std::set<int> places;
  for (int i = 0; i < 5000; ++i) {
    queue.Take(Packet(), 0);
    const bool passed = queue.Next(0).has_value();
    in_a_row = passed ? 0 : in_a_row + 1;
    most_in_a_row = std::max(most_in_a_row, in_a_row);
    if (!passed) places.insert(i % 5);
    lost += !passed;
  }
  EXPECT_NEAR(lost, 1000, 1);
  EXPECT_EQ(most_in_a_row, 2);
  EXPECT_EQ(places.size(), 5u) << "at random places";
}

TEST(WireQueue, LetsOthersPass) {
  WireQueue queue;
  NetworkRule rule = Rule();
  rule.reorder = 0.5;
  rule.reorder_s = 0.001;
  queue.Add(rule, {});
  for (int i = 0; i < 200; ++i) queue.Take(Packet(static_cast<std::size_t>(i)), i * 10'000);
  std::vector<std::size_t> sizes;
  while (const auto departure = queue.Next(1000 * kMs)) sizes.push_back(departure->bytes.size());
  EXPECT_EQ(sizes.size(), 200u);
  EXPECT_FALSE(std::is_sorted(sizes.begin(), sizes.end()));
}

TEST(WireQueue, PassesAtARateAndDropsWhatARouterWouldNotKeep) {
  WireQueue queue;
  NetworkRule rule = Rule();
  rule.rate_bytes_per_s = 1'000'000;
  queue.Add(rule, {});
  for (int i = 0; i < 1000; ++i) queue.Take(Packet(960), 0);  // 1000 bytes each: 1 ms
  int passed = 0;
  double last = 0;
  for (double ms = LeavesAfterMs(queue); ms >= 0; ms = LeavesAfterMs(queue)) {
    ++passed;
    last = ms;
  }
  EXPECT_NEAR(last, passed, 1e-6);
  EXPECT_NEAR(passed, 101, 2) << "a tenth of a second";
}

TEST(WireQueue, ResetsWhatStoodAndNotWhatIsNew) {
  WireQueue queue;
  NetworkRule rule = Rule();
  rule.reset = true;
  queue.Add(rule, {});
  queue.Take(Packet(0, 4002, {.syn = true, .ack = false}), 0);
  EXPECT_TRUE(queue.Next(0));
  queue.Take(Packet(50, 4002), 0);
  EXPECT_EQ(queue.Next(0)->bytes, Packet(50, 4002));
  queue.Take(Packet(50), 0);
  const auto there = queue.Next(0), here = queue.Next(0);
  ASSERT_TRUE(there && here && !queue.Next(0));
  const auto forth = ParseIpPacket(there->bytes), back = ParseIpPacket(here->bytes);
  ASSERT_TRUE(forth && back);
  EXPECT_TRUE(forth->rst && back->rst && here->back && !there->back);
  EXPECT_EQ(forth->flow(), std::tuple(kHere, 4000, kThere, 5000));
  EXPECT_EQ(forth->sequence, 1000u);
  EXPECT_EQ(back->flow(), std::tuple(kThere, 5000, kHere, 4000));
  EXPECT_EQ(back->sequence, 7000u) << "what the sender expects next";
}

TEST(WireQueue, BlocksNewConnectionsOnly) {
  WireQueue queue;
  NetworkRule rule = Rule();
  rule.block = rule.refuse = true;
  rule.port = 5000;
  queue.Add(rule, {});
  queue.Take(Packet(10), 0);
  EXPECT_TRUE(queue.Next(0));
  queue.Take(Packet(0, 4000, {.syn = true, .ack = false}), 0);
  const auto refused = queue.Next(0);
  ASSERT_TRUE(refused && refused->back);
  const auto packet = ParseIpPacket(refused->bytes);
  EXPECT_TRUE(packet->rst);
  EXPECT_EQ(packet->acknowledged, 1001u);
  queue.Remove(7);
  rule.refuse = false;
  queue.Add(rule, {});
  queue.Take(Packet(0, 4000, {.syn = true, .ack = false}), 0);
  EXPECT_FALSE(queue.due_ns());
}

TEST(IpPacket, WhatIsShorterThanItSaysIsNone) {
  const std::string whole = Packet(8);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(ParseIpPacket(std::span(whole).first(bytes))) << bytes;
  }
  EXPECT_EQ(ParseIpPacket(whole)->payload_bytes, 8u);
}

TEST(NetworkRule, ComesBackAsItWas) {
  NetworkRule rule = Rule();
  rule.spared = {1, 2};
  rule.jitter_s = 0.1234567890123;
  rule.refuse = true;
  rule.seed = 0xffffffffffffffffu;
  const auto decoded = control::Decode<NetworkRule>(control::Encode(rule));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(control::Encode(*decoded), control::Encode(rule));
  EXPECT_FALSE(control::Decode<NetworkRule>("{}"));
  EXPECT_FALSE(control::Decode<NetworkRule>("delay 1"));
}

}  // namespace
}  // namespace lockstep::stress::network
