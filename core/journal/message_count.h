// Where a rank's operations stand among its sends and receives.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/journal/event.h"

namespace lockstep::journal {

// Of one rank on one communicator. Allocates at the first message with a peer.
class MessageCount {
 public:
  // `messages_before` of the operation that comes next. `peer`: its root.
  std::uint32_t Next(collective::Collective collective, std::int32_t peer) {
    if (!collective::IsMessage(collective)) return all_;
    if (all_ < kUnknownMessages) ++all_;
    constexpr std::int32_t kMostPeers = 1 << 20;  // a peer may also be a mistake
    if (peer < 0 || peer >= kMostPeers) return kUnknownMessages;
    const auto place = static_cast<std::size_t>(peer);
    if (place >= with_.size()) with_.resize(place + 1);
    std::uint32_t& count = with_[place][collective == collective::Collective::kSend ? 0 : 1];
    return count < kUnknownMessages ? count++ : kUnknownMessages;
  }

 private:
  std::uint32_t all_ = 0;
  std::vector<std::array<std::uint32_t, 2>> with_;  // by peer: sent, received
};

}  // namespace lockstep::journal
