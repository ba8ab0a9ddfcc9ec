// What members of a communicator call from the place on where their calls differ. MPI says nothing
// of them any more, and a library may go on: it pairs messages of calls of one kind, whatever came
// between them. Who waits for a call that another member has not made is known all the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "watch/events/event.h"

namespace lockstep::watch::judge {

// How often a member had made a call by one of them, that one included. All 0: not counted.
struct Turn {
  std::uint64_t calls = 0;      // of this kind
  std::uint64_t as_root = 0;    // … with itself as the root
  std::uint64_t with_root = 0;  // … with the same root
};

class CallsApart {
 public:
  explicit CallsApart(int size) : size_(static_cast<std::size_t>(size)) {}

  // The next call of `member`.
  Turn Count(const events::Event& call, int member) {
    const auto at = static_cast<std::size_t>(member);
    Kind& kind = kinds_[call.call];
    std::vector<std::uint64_t>& with_root = kind.with_root[call.peer];
    kind.calls.resize(size_);
    kind.as_root.resize(size_);
    with_root.resize(size_);
    if (call.peer == member) ++kind.as_root[at];
    return {++kind.calls[at], kind.as_root[at], ++with_root[at]};
  }

  // Some member has not made the call that `me` waits for in its own. `small`: a message that comes
  // all the same, because trees of two roots share a branch, takes no time.
  bool IsUnanswered(const events::Event& call, const Turn& turn, int me, bool small) const {
    const Kind& kind = kinds_.at(call.call);
    const std::vector<std::uint64_t>& with_root = kind.with_root.at(call.peer);
    const events::Sync sync = events::FactsOf(call.call).sync;
    std::uint64_t given = 0;  // a root gives once to every other member
    bool missed = false;
    for (std::size_t member = 0; member < size_; ++member) {
      const bool higher = static_cast<int>(member) > me;
      if (static_cast<int>(member) == me || (sync == events::Sync::kLower && higher)) continue;
      given += kind.as_root[member];
      missed = missed || kind.calls[member] < turn.calls ||
               (small && with_root[member] < turn.with_root);
    }
    const bool takes = sync == events::Sync::kRoot && call.peer != me;
    return takes ? given < turn.calls - turn.as_root : missed;
  }

 private:
  struct Kind {
    std::vector<std::uint64_t> calls;    // by member
    std::vector<std::uint64_t> as_root;  // … with itself as the root
    std::map<std::int32_t, std::vector<std::uint64_t>> with_root;
  };

  std::size_t size_;
  std::map<events::Call, Kind> kinds_;
};

}  // namespace lockstep::watch::judge
