// A rank's receives claim messages in the order in which they were posted. A receive that names its
// source takes the first message of that source that fits. Of one that takes any source nobody
// knows which message it took until its rank is told. So what it may have taken, it may as well
// have left for a later receive.
#include "watch/judge/claims.h"

#include <algorithm>
#include <vector>

namespace lockstep::watch::judge {
namespace {

bool Fits(const Event& receive, const Event& sent) {
  return receive.tag == events::kAnyTag || receive.tag == sent.tag;
}

// Calls `see` with every channel to this receive; stops where it returns true.
template <typename See>
bool AnyChannel(const History& history, int rank, const Event& receive, See see) {
  const int me = history.RankIn(rank, receive.comm);
  const auto comm = history.communicators.find(receive.comm);
  if (me < 0 || comm == history.communicators.end()) return false;
  const bool wild = receive.peer == events::kAnySource;
  const int first = wild ? 0 : receive.peer;
  const int last = wild ? comm->second.size - 1 : receive.peer;
  for (int source = first; source <= last; ++source) {
    const auto channel = history.channels.find({receive.comm, source, me});
    if (channel != history.channels.end() && see(channel->second)) return true;
  }
  return false;
}

}  // namespace

Claims::Claims(const History& history) : history_(history) {
  for (const auto& [key, channel] : history.channels) {
    for (const auto& taken : channel.taken) {
      for (const Message& message : channel.sent) {
        if (message.sent.tag == taken.tag) wanted_.insert(message.number);
      }
    }
  }
  for (int rank = 0; rank < history.size; ++rank) {
    std::vector<std::pair<std::uint64_t, const Event*>> receives;
    const Rank& mine = history.ranks[static_cast<std::size_t>(rank)];
    for (const auto& [number, request] : mine.requests) {
      const bool waits = request.active && request.order != 0 && !request.cancelled;
      if (waits) receives.emplace_back(request.order, &request.event);
    }
    for (const auto& [thread, open] : mine.open) {
      if (open.order != 0) receives.emplace_back(open.order, &open.event);
    }
    std::sort(receives.begin(), receives.end());
    for (const auto& [order, event] : receives) {
      if (Claim(rank, *event)) served_.insert({rank, order});
    }
  }
}

bool Claims::Claim(int rank, const Event& receive) {
  const bool wild = receive.peer == events::kAnySource;
  bool found = false;
  AnyChannel(history_, rank, receive, [&](const Channel& channel) {
    for (const Message& message : channel.sent) {
      if (!Fits(receive, message.sent) || Taken(message)) continue;
      const bool certain = !wild && !found && !Wanted(message);
      found = true;
      wanted_.insert(message.number);
      if (!certain) continue;
      taken_.insert(message.number);
      return true;
    }
    return false;
  });
  return found;
}

bool Claims::Arrives(int rank, const Event& probe) const {
  return AnyChannel(history_, rank, probe, [&](const Channel& channel) {
    return std::any_of(channel.sent.begin(), channel.sent.end(), [&](const Message& message) {
      return Fits(probe, message.sent) && !Taken(message);
    });
  });
}

const Message* Claims::NearMiss(int rank, const Event& receive, bool* other_comm) const {
  const int source =
      receive.peer == events::kAnySource ? -1 : history_.WorldRank(receive.comm, receive.peer);
  for (const auto& [key, channel] : history_.channels) {
    const auto& [comm, from, to] = key;
    if (history_.WorldRank(comm, to) != rank || channel.compared_from == kNever) continue;
    for (const Message& message : channel.sent) {
      const bool same_comm = comm == receive.comm;
      // Nobody means itself: with a wrong communicator it has the number of the rank that is meant.
      const bool meant = source == rank && !same_comm && from == receive.peer;
      if (source >= 0 && message.source != source && !meant) continue;
      if (same_comm == Fits(receive, message.sent) || Wanted(message)) continue;
      *other_comm = !same_comm;
      return &message;
    }
  }
  return nullptr;
}

}  // namespace lockstep::watch::judge
