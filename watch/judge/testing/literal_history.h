// Histories written down call by call. A site is a line of an imagined program, so that findings
// read "rank 1 … at line 7".
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <regex>
#include <string>
#include <vector>

#include "watch/events/event.h"
#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

inline constexpr std::uint32_t kInt = 1 << 8 | 4;
inline constexpr std::uint32_t kFloat = 3 << 8 | 4;
inline constexpr std::uint64_t kOtherComm = 4711;

class LiteralHistory {
 public:
  explicit LiteralHistory(int size, Options options = {})
      : judge_(
            size, [](int, std::uint64_t site) { return "line " + std::to_string(site); }, options) {
    for (int rank = 0; rank < size; ++rank) Communicator(rank, events::kWorldComm, rank, size);
  }

  // A call that is open: what it is about, then Left where it returned.
  static Event Asks(Call call, int line) {
    Event event;
    event.phase = events::Phase::kEnter;
    event.call = call;
    event.site = static_cast<std::uint64_t>(line);
    event.thread = 1;
    event.comm = events::kWorldComm;
    event.peer = events::kNoRoot;
    event.tag = events::kNoOp;
    return event;
  }
  static Event Sends(Call call, int line, int peer, int tag = 0) {
    Event event = Asks(call, line);
    event.peer = peer;
    event.tag = tag;
    event.type = kInt;
    event.count = 1;
    if (call == Call::kSsend || call == Call::kIssend) event.flags = events::kSynchronous;
    if (call == Call::kBsend) event.flags = events::kBuffered;
    if (call == Call::kSend_init) event.flags = events::kPersistent;
    return event;
  }
  static Event Receives(Call call, int line, int peer, int tag = 0) {
    Event event = Sends(call, line, peer, tag);
    event.flags = events::kReceiving;
    return event;
  }

  // An event that names some ranks: as parts, which come before it.
  Event Naming(int rank, const Event& event, std::initializer_list<int> others) {
    for (const int other : others) {
      Event part = event;
      part.phase = events::Phase::kPart;
      part.peer = other;
      judge_.Take(rank, part);
    }
    return event;
  }
  void Open(int rank, const Event& event) { judge_.Take(rank, event); }
  void Left(int rank, Call call) {
    Event event = Asks(call, 0);
    event.phase = events::Phase::kLeave;
    judge_.Take(rank, event);
  }
  // It returned before it was read. Of a group that needs an event of its own.
  void Call_(int rank, Event event) {
    if (!events::OfGroup(event.call)) event.phase = events::LeftAfter(event.phase);
    Open(rank, event);
    if (events::OfGroup(event.call)) Left(rank, event.call);
  }
  // A receive that got its message.
  void Got(int rank, const Event& receive, int source, int tag = 0) {
    Open(rank, receive);
    Over(rank, receive.call, 0, source, tag);
    Left(rank, receive.call);
  }
  // A call that leaves a request, which has returned.
  void Posts(int rank, Event event, std::uint32_t request) {
    event.request = request;
    Call_(rank, event);
  }
  void OpenOn(int rank, Call call, int line, std::initializer_list<std::uint32_t> requests) {
    for (const std::uint32_t request : requests) {
      Event part = Asks(call, line);
      part.phase = events::Phase::kPart;
      part.request = request;
      judge_.Take(rank, part);
    }
    Open(rank, Asks(call, line));
  }
  void Waits(int rank, int line, std::uint32_t request, int source = events::kProcNull,
             int tag = 0) {
    OpenOn(rank, Call::kWait, line, {request});
    Over(rank, Call::kWait, request, source, tag);
    Left(rank, Call::kWait);
  }
  void Over(int rank, Call call, std::uint32_t request, int source, int tag) {
    Event event = Asks(call, 0);
    event.phase = events::Phase::kDone;
    event.request = request;
    event.peer = source;
    event.tag = tag;
    if (source == events::kProcNull) event.flags = events::kNoMessage;
    judge_.Take(rank, event);
  }
  void Communicator(int rank, std::uint64_t comm, int member, int size) {
    Makes(rank, events::Object::kCommunicator, 0, Call::kInit, 0, comm, member, size);
  }
  void Makes(int rank, events::Object object, std::uint32_t number, Call call, int line,
             std::uint64_t comm = 0, int member = 0, int size = 0) {
    Event event = Asks(call, line);
    event.phase = events::Phase::kMade;
    event.object = object;
    event.request = number;
    event.comm = comm;
    event.peer = member;
    event.count = size;
    judge_.Take(rank, event);
  }
  // Of a communicator that only callers know of: all of the world is in it.
  void Gathers(int rank, std::uint64_t comm, int size) {
    Communicator(rank, comm, rank, size);
    Event event = Asks(Call::kComm_create_group, 0);
    event.phase = events::Phase::kMembers;
    event.comm = comm;
    event.peer = 0;
    event.count = size;
    judge_.Take(rank, event);
  }
  void Frees(int rank, std::uint32_t number) {
    Event event = Asks(Call::kNone, 0);
    event.phase = events::Phase::kFreed;
    event.request = number;
    judge_.Take(rank, event);
  }
  void Finalizes(int rank, int line = 99) { Call_(rank, Asks(Call::kFinalize, line)); }
  void EnterFinalize(int rank, int line = 99) { Open(rank, Asks(Call::kFinalize, line)); }

  // "cause: text", one a finding; with the standstill, if there is one.
  std::vector<std::string> Findings() {
    std::vector<std::string> told;
    for (const Finding& finding : Told()) {
      told.push_back(std::string(NameOf(finding.cause)) + ": " + finding.text);
    }
    return told;
  }
  std::vector<std::string> Causes() {
    std::vector<std::string> told;
    for (const Finding& finding : Told()) told.emplace_back(NameOf(finding.cause));
    return told;
  }
  std::vector<int> Stuck() const {
    std::vector<int> ranks;
    for (const Wait& wait : judge_.Standstill().waits) ranks.push_back(wait.rank);
    return ranks;
  }
  Judge& judge() { return judge_; }

 private:
  // The line that a person reads names a culprit.
  std::vector<Finding> Told() {
    judge_.Hangs(judge_.Standstill());
    std::vector<Finding> told = judge_.Tell();
    for (const Finding& finding : told) {
      const std::string headline = finding.headline.text() + " ";
      const bool named =
          std::any_of(finding.culprits.begin(), finding.culprits.end(), [&](int rank) {
            return std::regex_search(headline,
                                     std::regex("rank " + std::to_string(rank) + "[^0-9]"));
          });
      EXPECT_TRUE(named) << headline;
    }
    return told;
  }

  Judge judge_;
};

}  // namespace lockstep::watch::judge
