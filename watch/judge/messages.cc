// Which receive took which message, and whether the two fit. Between two ranks, each receive takes
// the first message that fits and that no receive before it takes. The events of either rank may be
// read first. What is not certain yet is left open.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {
namespace {

bool FitsTag(const Event& receive, int tag) {
  return receive.tag == events::kAnyTag || receive.tag == tag;
}

// Whether it may take a message of this channel, but for its tag.
bool IsOf(const ChannelKey& key, const Event& receive) {
  const auto& [comm, from, to] = key;
  return receive.comm == comm && (receive.peer == from || receive.peer == events::kAnySource);
}

// So many of both halves stay open in a channel: each event there looks at all of them.
constexpr std::size_t kMostOpen = 64;

}  // namespace

// A receive between two ranks: one that is over (its tag is known), or one that waits.
struct Judge::Receipt {
  std::uint64_t order = 0;
  const Taken* taken = nullptr;
  const Event* waiting = nullptr;
};

std::uint64_t Judge::Send(int rank, const Event& event) {
  const int me = history_.RankIn(rank, event.comm);
  if (me < 0 || event.peer < 0 || history_.communicators[event.comm].inter) return 0;
  const ChannelKey key = {event.comm, me, event.peer};
  Channel& channel = history_.channels[key];
  const std::uint64_t number = ++history_.last_message;
  channel.sent.push_back(
      {number, event, rank, history_.communicators[event.comm].passed[Index(me)]});
  if (options_.races) channel.sent.back().known = KnownBy(rank);
  const auto taken = std::ranges::find(channel.taken, event.tag, &Taken::tag);
  if (taken == channel.taken.end()) return number;
  if (IsOpen(key, *taken)) {
    Settle(key, channel);
    return number;
  }
  PairOf(channel, std::prev(channel.sent.end()), taken);
  return 0;
}

void Judge::StopComparing(int rank, const Event& half) {
  const auto& [name, comm, me] = history_.MembershipIn(rank, half.comm);
  if (!comm || me < 0 || comm->inter) return;
  const bool any = half.peer == events::kAnySource;
  const bool receives = (half.flags & events::kReceiving) != 0;
  for (int other = any ? 0 : half.peer; other >= 0 && other < comm->size; ++other) {
    const ChannelKey key = {name, receives ? other : me, receives ? me : other};
    history_.channels[key].compared_from = kNever;
    if (!any) break;
  }
}

void Judge::Withdraw(int rank, const Request& send, const Event& done) {
  if (send.message == 0 || (done.flags & events::kCancelled) == 0) return;
  const int me = history_.RankIn(rank, send.event.comm);
  std::erase_if(history_.channels[{send.event.comm, me, send.event.peer}].sent,
                [&](const Message& each) { return each.number == send.message; });
}

void Judge::Received(int rank, const Event& receive, std::uint64_t order, int source, int tag,
                     bool blocked) {
  const int me = history_.RankIn(rank, receive.comm);
  if (me < 0 || history_.communicators[receive.comm].inter) return;
  const bool wild = receive.peer == events::kAnySource;
  if (wild && options_.races) CheckRace(rank, receive, source);
  const Taken taken{tag, receive, rank, blocked,
                    history_.communicators[receive.comm].called[Index(me)], order};
  const ChannelKey key = {receive.comm, source, me};
  Channel& channel = history_.channels[key];
  const bool open = IsOpen(key, taken);
  const auto sent =
      std::ranges::find_if(channel.sent, [&](const Message& each) { return each.sent.tag == tag; });
  if (!open && sent != channel.sent.end()) {
    if (order >= channel.compared_from) Pair(*sent, taken);
    channel.sent.erase(sent);
    return;
  }
  const auto after = std::find_if(channel.taken.rbegin(), channel.taken.rend(),
                                  [&](const Taken& each) { return each.order <= order; });
  channel.taken.insert(after.base(), taken);
  if (open) Settle(key, channel);
}

// Whether a receive that waits may have taken what this one seems to have taken. Else the first
// receive of a tag took the first message of this tag.
bool Judge::IsOpen(const ChannelKey& key, const Taken& taken) const {
  const Rank& receiver = history_.ranks[Index(taken.rank)];
  if (receiver.unsettled.contains(key)) return true;
  for (const auto& [order, number] : receiver.posted) {
    if (order >= taken.order) break;
    const Event& receive = receiver.requests.at(number).event;
    if (IsOf(key, receive) && FitsTag(receive, taken.tag)) return true;
  }
  return false;
}

// All receives of this channel, in the order in which they were posted.
std::vector<Judge::Receipt> Judge::ReceiptsOf(const ChannelKey& key, const Channel& channel) const {
  std::vector<Receipt> receipts;
  for (const Taken& taken : channel.taken) receipts.push_back({taken.order, &taken, nullptr});
  const Rank& receiver = history_.ranks[Index(channel.taken.front().rank)];
  for (const auto& [order, number] : receiver.posted) {
    if (order > channel.taken.back().order) break;
    const Event& receive = receiver.requests.at(number).event;
    if (IsOf(key, receive)) receipts.push_back({order, nullptr, &receive});
  }
  std::ranges::sort(receipts, {}, &Receipt::order);
  return receipts;
}

// Numbers of messages and orders of their receives, as far as they certainly belong together. A
// receive of any source that waits may have taken the first message that fits it. Then nothing is
// certain of this tag before its rank is told.
std::vector<Judge::Halves> Judge::PairsOf(const ChannelKey& key, const Channel& channel) const {
  std::vector<const Message*> left;
  for (const Message& message : channel.sent) left.push_back(&message);
  std::set<int> open;  // tags
  std::vector<Halves> pairs;
  for (const Receipt& receipt : ReceiptsOf(key, channel)) {
    const auto first = std::ranges::find_if(left, [&](const Message* each) {
      return receipt.taken ? receipt.taken->tag == each->sent.tag
                           : FitsTag(*receipt.waiting, each->sent.tag);
    });
    if (first == left.end()) continue;
    const int tag = (*first)->sent.tag;
    if (open.contains(tag) && receipt.waiting && receipt.waiting->tag == events::kAnyTag) break;
    if (receipt.waiting && receipt.waiting->peer == events::kAnySource) open.insert(tag);
    if (open.contains(tag)) continue;
    if (receipt.taken) pairs.emplace_back((*first)->number, receipt.order);
    left.erase(first);
  }
  return pairs;
}

// Messages of a tag are received in their order. So one of each half goes, though they may not
// belong together, and what is left is as many messages as nobody received.
void Judge::GiveUpOldest(Channel& channel) {
  for (auto taken = channel.taken.begin(); taken != channel.taken.end(); ++taken) {
    const auto sent = std::ranges::find_if(
        channel.sent, [&](const Message& each) { return each.sent.tag == taken->tag; });
    if (sent == channel.sent.end()) continue;
    channel.compared_from = std::max(channel.compared_from, taken->order + 1);
    channel.sent.erase(sent);
    channel.taken.erase(taken);
    return;
  }
}

void Judge::Settle(const ChannelKey& key, Channel& channel) {
  if (channel.taken.empty() || channel.sent.empty()) return;
  if (std::min(channel.sent.size(), channel.taken.size()) > kMostOpen) return GiveUpOldest(channel);
  const auto pairs = PairsOf(key, channel);
  std::set<ChannelKey>& unsettled = history_.ranks[Index(channel.taken.front().rank)].unsettled;
  for (const auto& [number, order] : pairs) {
    PairOf(channel, std::ranges::find(channel.sent, number, &Message::number),
           std::ranges::find(channel.taken, order, &Taken::order));
  }
  if (channel.sent.empty() || channel.taken.empty()) {
    unsettled.erase(key);
  } else {
    unsettled.insert(key);
  }
}

void Judge::PairOf(Channel& channel, std::deque<Message>::iterator sent,
                   std::deque<Taken>::iterator taken) {
  if (taken->order >= channel.compared_from) Pair(*sent, *taken);
  channel.sent.erase(sent);
  channel.taken.erase(taken);
}

void Judge::Pair(const Message& message, const Taken& taken) {
  if (options_.races) NoteMatched(message, taken);
  const Event& sent = message.sent;
  const Event& receive = taken.receive;
  // A collective may wait for all members: then this message would never have been sent. Where
  // members called different things, nobody counts them any more. Of a group, other threads make
  // the collectives: their order among messages says nothing. So may those of any rank.
  const bool ordered = history_.ranks[Index(message.source)].OneThread() &&
                       history_.ranks[Index(taken.rank)].OneThread();
  const bool counted =
      ordered && !history_.communicators[sent.comm].broken && !events::OfGroup(sent.call);
  if (counted && taken.blocked && message.passed > taken.called) {
    Add(Cause::kUnsafeOrder, {message.source, taken.rank},
        fmt::format("rank {} sends after a collective at {}; rank {} waits for it before that "
                    "collective at {}",
                    message.source, At(message.source, sent.site), taken.rank,
                    At(taken.rank, receive.site)),
        receive.site, false);
  }
  // Nor is it known then which message of several met which receive.
  if (!ordered || sent.type < 256 || receive.type < 256 || sent.count == 0) return;
  if (sent.type != receive.type) {
    Add(Cause::kDatatypeMismatch, {message.source, taken.rank},
        fmt::format("rank {} sends another datatype at {} than rank {} receives at {}",
                    message.source, At(message.source, sent.site), taken.rank,
                    At(taken.rank, receive.site)),
        receive.site);
  } else if (receive.count >= 0 && sent.count > receive.count) {
    Add(Cause::kTruncation, {message.source, taken.rank},
        fmt::format("rank {} sends {} elements at {}; rank {} has room for {} at {}",
                    message.source, sent.count, At(message.source, sent.site), taken.rank,
                    receive.count, At(taken.rank, receive.site)),
        receive.site);
  }
}

// The libraries end a process whose receive is too small, so nothing says what it got.
bool Judge::TellUnfit(int rank) {
  const Rank& mine = history_.ranks[Index(rank)];
  const std::size_t before = told_.size();
  for (const auto& [thread, open] : mine.open) {
    if (open.over) continue;
    if (open.order != 0) PairIfSure(rank, open.event, open.order);
    for (const Event& part : open.parts) {
      const auto found = mine.requests.find(part.request);
      if (found == mine.requests.end() || !found->second.active) continue;
      PairIfSure(rank, found->second.event, found->second.order);
    }
  }
  return told_.size() > before;
}

void Judge::PairIfSure(int rank, const Event& receive, std::uint64_t order) {
  const ChannelKey key = {receive.comm, receive.peer, history_.RankIn(rank, receive.comm)};
  const auto found = history_.channels.find(key);
  if (found == history_.channels.end() || order == 0) return;
  const Channel& channel = found->second;
  if (!channel.taken.empty() || order < channel.compared_from) return;
  std::vector<const Message*> left;
  for (const Message& message : channel.sent) left.push_back(&message);
  const auto first = [&left](const Event& each) {
    return std::ranges::find_if(
        left, [&](const Message* message) { return FitsTag(each, message->sent.tag); });
  };
  const Rank& mine = history_.ranks[Index(rank)];
  for (const auto& [earlier, number] : mine.posted) {
    const Event& posted = mine.requests.at(number).event;
    if (earlier >= order || !IsOf(key, posted)) continue;
    if (posted.peer == events::kAnySource) return;
    if (const auto its = first(posted); its != left.end()) left.erase(its);
  }
  if (const auto its = first(receive); its != left.end()) {
    Pair(**its, {.tag = receive.tag, .receive = receive, .rank = rank, .order = order});
  }
}

}  // namespace lockstep::watch::judge
