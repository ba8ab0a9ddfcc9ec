// One direction of a relayed connection: bytes that wait for the time at which they leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "stress/links/flow_ledger.h"
#include "stress/links/link_rule.h"

namespace lockstep::stress::links {

// The state of a flow; it moves bytes between two sockets that do not block, which it does not own.
class Flow {
 public:
  Flow(int from, int to, bool outgoing) : from_(from), to_(to), outgoing_(outgoing) {}

  // Of `all`, takes those that concern this flow from now on.
  void SetRules(const std::map<int, LinkRule>& all, int peer);

  bool wants_input() const { return !ended_ && queued_bytes_ < RoomBytes(); }
  // It has something to write that is due, and the socket took no more.
  bool blocked() const { return blocked_; }
  // When it wants to write next; none: when input or rules come.
  std::optional<std::int64_t> due_ns() const;

  // Reads what is there (at most kReadBytes), when wants_input().
  void Read(std::span<char> scratch, std::int64_t now_ns);
  // Writes what is due.
  void Write(std::int64_t now_ns);

  // Everything that came has gone, and nothing more comes: the end of the stream was passed on.
  bool closed() const { return closed_; }
  // A side is broken, and no rule keeps that from the other.
  bool broken() const { return broken_ && !down(); }
  const FlowLedger& ledger() const { return ledger_; }
  // Bytes that a rule touched since this was asked last, by rule.
  std::map<int, std::uint64_t> TakeTouched();

  static constexpr std::size_t kReadBytes = 256 << 10;

 private:
  struct Chunk {
    std::int64_t due_ns;
    std::string bytes;
    std::size_t sent = 0;
  };
  bool down() const;
  std::size_t RoomBytes() const;
  std::int64_t DueOf(std::size_t bytes, std::int64_t now_ns);
  std::size_t Send(std::span<const char> bytes);

  int from_;
  int to_;
  bool outgoing_;
  struct Applied {
    LinkRule rule;
    Random random;
  };
  std::vector<Applied> rules_;
  std::deque<Chunk> queue_;
  std::size_t queued_bytes_ = 0;
  std::int64_t last_due_ns_ = 0;
  std::int64_t free_ns_ = 0;  // when the link has passed on what it was given, at its rate
  bool ended_ = false;
  bool closed_ = false;
  bool broken_ = false;
  bool blocked_ = false;
  std::map<int, std::uint64_t> touched_;
  FlowLedger ledger_;
};

}  // namespace lockstep::stress::links
