// The wait-for graph. A blocked rank has needs; a need is met by any of some ranks. Ranks that run
// can meet anything, ranks that are over meet nothing. What a rank already sent may still arrive,
// so a receive that it fits needs nobody.
#include "watch/judge/wait_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/verdict/wait_graph.h"
#include "watch/judge/claims.h"
#include "watch/judge/collective_needs.h"

namespace lockstep::watch::judge {
namespace {

using events::Class;
using events::FactsOf;
using verdict::WaitGraph;

class Graph {
 public:
  explicit Graph(const History& history) : history_(history), claims_(history) {}

  StuckRanks Solve();

 private:
  bool Over(const Rank& rank) const { return rank.finalizing || rank.lost || rank.aborted; }
  // All threads of the rank are in calls: no other may free it.
  bool IsInCalls(int rank) const;
  // What blocks the rank; none where nothing does, as far as is known.
  std::optional<Wait> WaitOf(int rank) const;
  std::optional<Wait> WaitOfCall(int rank, const OpenCall& open) const;
  std::vector<Need> NeedsOfMessages(int rank, const OpenCall& open) const;
  std::optional<Wait> WaitOfThreads(int rank) const;
  std::optional<Wait> WaitForRequests(int rank, const OpenCall& open) const;
  std::optional<Need> NeedOfReceive(int rank, const Event& receive) const;
  // The message of a send, while nobody was told that he has it.
  const Message* Unreceived(int rank, const Event& sent, std::uint64_t message) const;
  std::optional<Need> NeedOfSend(int rank, const Event& sent, std::uint64_t message) const;
  bool IsUnderWay(int rank, std::uint32_t number) const;
  std::vector<Need> NeedsOfRequest(int rank, std::uint32_t number) const;

  const History& history_;
  Claims claims_;
};

std::optional<Need> Graph::NeedOfReceive(int rank, const Event& receive) const {
  if (receive.peer == events::kProcNull) return std::nullopt;
  const auto comm = history_.communicators.find(receive.comm);
  if (comm == history_.communicators.end()) return std::nullopt;
  Need need{{}, false, &receive};
  const int size = comm->second.size;
  for (int member = 0; member < size; ++member) {
    if (receive.peer != events::kAnySource && receive.peer != member) continue;
    const int world = history_.WorldRank(receive.comm, member);
    if (world < 0) return std::nullopt;
    if (receive.peer == events::kAnySource && world == rank) continue;
    need.any_of.push_back(world);
  }
  return need;
}

const Message* Graph::Unreceived(int rank, const Event& sent, std::uint64_t message) const {
  if (message == 0) return nullptr;
  const ChannelKey key = {sent.comm, history_.RankIn(rank, sent.comm), sent.peer};
  const auto channel = history_.channels.find(key);
  if (channel == history_.channels.end()) return nullptr;
  const std::deque<Message>& messages = channel->second.sent;
  const auto waiting = std::ranges::find(messages, message, &Message::number);
  return waiting == messages.end() ? nullptr : &*waiting;
}

std::optional<Need> Graph::NeedOfSend(int rank, const Event& sent, std::uint64_t message) const {
  if ((sent.flags & events::kBuffered) != 0) return std::nullopt;
  const Message* const waiting = Unreceived(rank, sent, message);
  if (waiting == nullptr || claims_.Wanted(*waiting)) return std::nullopt;
  // Where a half was given up, it may have taken any: nobody knows which messages are left.
  const ChannelKey key = {sent.comm, history_.RankIn(rank, sent.comm), sent.peer};
  if (history_.channels.at(key).compared_from == kNever) return std::nullopt;
  const int to = history_.WorldRank(sent.comm, sent.peer);
  if (to < 0) return std::nullopt;
  return Need{{to}, (sent.flags & events::kSynchronous) == 0, &sent};
}

std::vector<Need> Graph::NeedsOfRequest(int rank, std::uint32_t number) const {
  const Rank& mine = history_.ranks[Index(rank)];
  const auto found = mine.requests.find(number);
  if (found == mine.requests.end() || !found->second.active) return {};
  const Request& request = found->second;
  if (request.cancelled) return {};
  if (request.place.position != 0) {
    return NeedsOfCollective(history_, rank, request.event, request.place);
  }
  std::optional<Need> need;
  if (request.order == 0) {
    need = NeedOfSend(rank, request.event, request.message);
  } else if (!claims_.Served(rank, request.order)) {
    need = NeedOfReceive(rank, request.event);
  }
  return need ? std::vector<Need>{*need} : std::vector<Need>{};
}

// Of a request without needs: it may still take its time, as large messages do.
bool Graph::IsUnderWay(int rank, std::uint32_t number) const {
  if (number == events::kOtherRequest) return true;
  const Rank& mine = history_.ranks[Index(rank)];
  const auto found = mine.requests.find(number);
  if (found == mine.requests.end() || !found->second.active) return false;
  const Request& request = found->second;
  const bool local = FactsOf(request.event.call).call_class == Class::kPostLocal;
  return local || request.cancelled || request.place.position != 0 || request.order != 0 ||
         Unreceived(rank, request.event, request.message) != nullptr;
}

bool Graph::IsInCalls(int rank) const {
  const Rank& mine = history_.ranks[Index(rank)];
  const std::size_t threads = mine.OneThread() ? 1 : static_cast<std::size_t>(mine.live_threads);
  return mine.begun && threads > 0 && mine.open.size() == threads;
}

std::vector<Need> Graph::NeedsOfMessages(int rank, const OpenCall& open) const {
  const Event& event = open.event;
  const Class kind = FactsOf(event.call).call_class;
  std::optional<Need> send;
  std::optional<Need> receive;
  if (kind == Class::kSend) send = NeedOfSend(rank, event, open.message);
  if (kind == Class::kExchange && !open.parts.empty()) {
    send = NeedOfSend(rank, open.parts.front(), open.message);
  }
  const bool receives = kind == Class::kReceive || kind == Class::kExchange;
  if (receives ? !claims_.Served(rank, open.order)
               : kind == Class::kProbe && !claims_.Arrives(rank, event)) {
    receive = NeedOfReceive(rank, event);
  }
  std::vector<Need> needs;
  if (send) needs.push_back(*std::move(send));
  if (receive) needs.push_back(*std::move(receive));
  return needs;
}

std::optional<Wait> Graph::WaitForRequests(int rank, const OpenCall& open) const {
  Wait wait{rank, FactsOf(open.event.call).call_class == Class::kWaitAll, {}, false};
  for (const Event& part : open.parts) {
    const std::vector<Need> needs = NeedsOfRequest(rank, part.request);
    if (needs.empty() && !wait.all) return std::nullopt;
    wait.pending = wait.pending || (needs.empty() && IsUnderWay(rank, part.request));
    wait.needs.insert(wait.needs.end(), needs.begin(), needs.end());
  }
  return wait;
}

// Its threads are in collectives, or wait for a message: any of these that ends may let the rank go
// on.
std::optional<Wait> Graph::WaitOfThreads(int rank) const {
  const Rank& mine = history_.ranks[Index(rank)];
  Wait wait{rank, mine.open.size() == 1, {}, false};
  for (const auto& [thread, open] : mine.open) {
    if (open.over) return std::nullopt;
    const Class kind = FactsOf(open.event.call).call_class;
    std::vector<Need> needs;
    if (kind == Class::kCollective)
      needs = NeedsOfCollective(history_, rank, open.event, open.place);
    if (kind == Class::kWaitAll && !open.parts.empty()) {
      needs = NeedsOfRequest(rank, open.parts.front().request);
    }
    if (needs.empty()) return std::nullopt;
    wait.needs.insert(wait.needs.end(), needs.begin(), needs.end());
  }
  if (wait.needs.empty()) return std::nullopt;
  return wait;
}

std::optional<Wait> Graph::WaitOf(int rank) const {
  if (history_.ranks[Index(rank)].in_group) return WaitOfThreads(rank);
  if (!IsInCalls(rank)) return std::nullopt;
  // Of several threads, one that goes on may free the others. Only of the main thread a look sees
  // whether it had a processor, as soft needs ask.
  const auto& calls = history_.ranks[Index(rank)].open;
  if (calls.size() == 1) return WaitOfCall(rank, calls.begin()->second);
  Wait wait{rank, false, {}, false};
  for (const auto& [thread, open] : calls) {
    const std::optional<Wait> its = WaitOfCall(rank, open);
    const auto sure = [](const Need& need) { return !need.soft && !need.apart; };
    if (!its || !std::ranges::all_of(its->needs, sure)) return std::nullopt;
    wait.needs.insert(wait.needs.end(), its->needs.begin(), its->needs.end());
  }
  return wait;
}

std::optional<Wait> Graph::WaitOfCall(int rank, const OpenCall& open) const {
  if (open.over) return std::nullopt;
  const Class kind = FactsOf(open.event.call).call_class;
  std::optional<Wait> wait = Wait{rank, true, {}, false};
  if (kind == Class::kWaitAll || kind == Class::kWaitAny) {
    wait = WaitForRequests(rank, open);
  } else if (kind == Class::kCollective) {
    wait->needs = NeedsOfCollective(history_, rank, open.event, open.place);
    if (open.leaders.position != 0) {
      const std::vector<Need> pair =
          NeedsOfCollective(history_, rank, open.parts.front(), open.leaders);
      wait->needs.insert(wait->needs.end(), pair.begin(), pair.end());
    }
  } else if (kind == Class::kWindow) {
    wait->needs = NeedsOfWindow(history_, rank, open, &wait->pending);
  } else {
    wait->needs = NeedsOfMessages(rank, open);
    wait->pending = kind == Class::kExchange && claims_.Served(rank, open.order);
  }
  if (wait && wait->needs.empty()) return std::nullopt;
  const bool hard =
      wait && std::ranges::any_of(wait->needs, [](const Need& need) { return !need.soft; });
  // It may wait for that only, and its sends be buffered.
  if (wait && wait->pending && !hard) return std::nullopt;
  return wait;
}

// What the library may have buffered counts only where nothing else keeps the rank in its call.
bool HasHardNeed(const Wait& wait) {
  return std::ranges::any_of(wait.needs, [](const Need& need) { return !need.soft; });
}

// The rank in the graph, by nodes of its needs that count.
void AddWait(const Wait& wait, WaitGraph& graph) {
  const bool hard_only = wait.all && HasHardNeed(wait);
  WaitGraph::Nodes nodes;
  for (const Need& need : wait.needs) {
    if (hard_only && need.soft) continue;
    nodes.push_back(graph.Add());
    graph.WaitForAny(nodes.back(), WaitGraph::Nodes(need.any_of.begin(), need.any_of.end()));
  }
  if (hard_only) {
    graph.WaitForAll(Index(wait.rank), nodes);
  } else {
    graph.WaitForAny(Index(wait.rank), nodes);
  }
}

// Of ranks that are left, with the needs that nobody met. `stuck`: by rank, also who is over.
StuckRanks StuckOf(std::vector<std::optional<Wait>> waits, const std::vector<bool>& stuck) {
  StuckRanks result;
  for (std::optional<Wait>& wait : waits) {
    if (!wait || !stuck[Index(wait->rank)]) continue;
    std::erase_if(wait->needs, [&](const Need& need) {
      return std::ranges::any_of(need.any_of, [&](int rank) { return !stuck[Index(rank)]; });
    });
    wait->pending = false;
    result.apart = result.apart || std::ranges::any_of(wait->needs, &Need::apart);
    const auto soft = std::ranges::count_if(wait->needs, &Need::soft);
    if (wait->all ? soft == std::ssize(wait->needs) : soft > 0) result.soft = true;
    result.waits.push_back(*std::move(wait));
  }
  return result;
}

StuckRanks Graph::Solve() {
  std::vector<std::optional<Wait>> waits(Index(history_.size));
  WaitGraph graph(waits.size());
  for (int rank = 0; rank < history_.size; ++rank) {
    std::optional<Wait>& wait = waits[Index(rank)];
    if (Over(history_.ranks[Index(rank)])) {
      graph.NeverGoesOn(Index(rank));
    } else if (wait = WaitOf(rank); wait) {
      AddWait(*wait, graph);
    }
  }
  return StuckOf(std::move(waits), graph.FindStuck());
}

}  // namespace

bool History::MainThreadWaits(int rank) const {
  const auto& open = ranks[static_cast<std::size_t>(rank)].open;
  return std::ranges::any_of(open, [](const auto& each) {
    const Event& event = each.second.event;
    return event.call == Call::kGroupWait && event.count == events::kMainThread;
  });
}

StuckRanks FindStuck(const History& history) { return Graph(history).Solve(); }

const Need& Wait::main() const {
  const auto hard = std::ranges::find_if(needs, [](const Need& need) { return !need.soft; });
  return hard == needs.end() ? needs.front() : *hard;
}

std::vector<const Wait*> HeartOf(const StuckRanks& stuck) {
  std::map<int, const Wait*> waits;
  for (const Wait& wait : stuck.waits) waits[wait.rank] = &wait;
  std::vector<const Wait*> way = {&stuck.waits.front()};
  for (;;) {
    // Who is over will never act; who is stuck might.
    const std::vector<int>& others = way.back()->main().any_of;
    const auto next =
        std::ranges::find_if(others, [&](int other) { return waits.count(other) > 0; });
    if (next == others.end()) return {way.back()};
    const auto again = std::ranges::find(way, waits.at(*next));
    if (again == way.end()) {
      way.push_back(waits.at(*next));
      continue;
    }
    way.erase(way.begin(), again);
    const auto lowest = std::ranges::min_element(
        way, [](const Wait* a, const Wait* b) { return a->rank < b->rank; });
    std::rotate(way.begin(), lowest, way.end());
    return way;
  }
}

}  // namespace lockstep::watch::judge
