// What is wrong with the network between two hosts, as the host knows it whose packets it befalls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::stress::network {

// Of the packets that leave this host for `to`.
struct NetworkRule {
  int id = 0;
  std::vector<std::string> to = {};  // IPv4 addresses of the other host
  // Processes of this host whose connections, and those of their parents, are left alone: the
  // judges, and the launcher's daemon.
  std::vector<int> spared = {};

  bool down = false;    // nothing passes
  bool reset = false;   // connections that stood when it began are reset, as by a firewall that
                        // forgot them; both ends are told
  bool block = false;   // no new connection is let through ...
  int port = 0;         // ... to this port; 0: to any
  bool refuse = false;  // ... and who asks is told so at once, instead of nothing
  double delay_s = 0;   // of every packet
  double jitter_s = 0;  // more, uniform in [0, jitter_s]; packets keep their order
  double loss = 0;      // share of the packets that are lost, at random places
  double reorder = 0;   // probability that a packet lets those of the next reorder_s pass
  double reorder_s = 0;
  double rate_bytes_per_s = 0;  // 0: unlimited
  std::uint64_t seed = 1;

  static void Describe(auto& fields, auto& rule) {
    fields(rule.id, rule.to, rule.spared, rule.down, rule.reset, rule.block, rule.port);
    fields(rule.refuse, rule.delay_s, rule.jitter_s, rule.loss, rule.reorder, rule.reorder_s);
    fields(rule.rate_bytes_per_s, rule.seed);
  }
};

// "delay 10 ms + up to 5 ms, loss 1 %"
std::string DescribeRule(const NetworkRule& rule);

}  // namespace lockstep::stress::network
