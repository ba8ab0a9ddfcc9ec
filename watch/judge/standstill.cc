// What is told of ranks that can never go on, and of what is left when a program ends.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "watch/judge/claims.h"
#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

using events::Class;
using events::FactsOf;
using events::Object;

namespace {

// What a call is about: of a wait, its first request that is not over.
const Event* Subject(const Rank& rank) {
  if (rank.open.empty()) return nullptr;
  const OpenCall& open = rank.open.begin()->second;
  const Class kind = FactsOf(open.event.call).call_class;
  if (kind != Class::kWaitAll && kind != Class::kWaitAny) return &open.event;
  for (const Event& part : open.parts) {
    const auto found = rank.requests.find(part.request);
    if (found != rank.requests.end() && found->second.active) return &found->second.event;
  }
  return &open.event;
}

// The call that `subject` is about; of several threads the first one's, where it is about none.
const Event& CallAbout(const Rank& rank, const Event* subject) {
  for (const auto& [thread, open] : rank.open) {
    if (&open.event == subject) return open.event;
    for (const Event& part : open.parts) {
      const auto found = rank.requests.find(part.request);
      const bool its =
          &part == subject || (found != rank.requests.end() && &found->second.event == subject);
      if (its) return open.event;
    }
  }
  return rank.open.begin()->second.event;
}

// What members of no communicator call together.
bool HasCallersOnly(Call call) {
  return call == Call::kComm_create_group || call == Call::kIntercomm_create ||
         call == Call::kIntercomm_merge;
}

bool Receives(const Event& event) {
  return (event.flags & events::kReceiving) != 0 || FactsOf(event.call).call_class == Class::kProbe;
}

}  // namespace

std::string Judge::NamedMessage(int rank, const Event& event) const {
  const bool receives = event.call == Call::kGroupRecv;
  if (!receives && event.call != Call::kGroupSend) return Named(rank, event);
  const std::string peer =
      event.peer < 0 ? "any" : fmt::format("rank {}", history_.WorldRank(event.comm, event.peer));
  const std::string where = At(rank, event.site);
  return fmt::format("{} {} {}, tag {}{}", FactsOf(event.call).name, receives ? "from" : "to", peer,
                     event.tag, where.empty() ? where : ", at " + where);
}

std::string Judge::Describe(int rank) const {
  return Describe(rank, Subject(history_.ranks[Index(rank)]));
}

std::string Judge::NamedPeer(const Event& message) const {
  if (message.peer == events::kAnySource) return "any";
  const int peer = history_.WorldRank(message.comm, message.peer);
  return peer >= 0 ? fmt::format("rank {}", peer)
                   : fmt::format("rank {} of its communicator", message.peer);
}

// `subject`: what the open call is about, if one is open.
std::string Judge::Describe(int rank, const Event* subject) const {
  const Rank& mine = history_.ranks[Index(rank)];
  if (mine.in_group) {
    if (!mine.open.empty()) return "in " + NamedMessage(rank, *subject);
    return mine.last.count2 == 0 ? "before its first collective"
                                 : "after " + Named(rank, mine.last);
  }
  if (mine.open.empty()) return mine.begun ? "outside MPI" : "before MPI_Init";
  const Event& open = CallAbout(mine, subject);
  const Event& event = *subject;
  std::string text = fmt::format("in {}", FactsOf(open.call).name);
  if (event.call != open.call) text += fmt::format(" for {}", FactsOf(event.call).name);
  const Class kind = FactsOf(event.call).call_class;
  const bool message = Receives(event) || kind == Class::kSend || kind == Class::kPostSend ||
                       kind == Class::kPrepare || kind == Class::kExchange ||
                       kind == Class::kPostExchange;
  if (message) {
    text += (Receives(event) ? " from " : " to ") + NamedPeer(event);
    if (event.tag != events::kAnyTag) text += fmt::format(", tag {},", event.tag);
  }
  return text + " at " + At(rank, open.site);
}

// What is told of a stuck rank is what it needs, not what is over already.
std::string Judge::Describe(const Wait& wait) const {
  return Describe(wait.rank, wait.main().about);
}

void Judge::Hangs(const StuckRanks& stuck) {
  if (stuck.waits.empty() || stuck.apart || Explained()) return;  // calls that differ were told
  if (TellLostTogether(stuck)) return;
  const std::vector<const Wait*> heart = HeartOf(stuck);
  for (const Wait* const wait : heart) {
    if (TellNearMiss(*wait) || TellNeverStarted(*wait)) return;
  }
  TellDeadlock(stuck, heart);
}

void Judge::TellHang(Cause cause, std::vector<int> culprits, std::string text) {
  Finding* const finding = Add(cause, std::move(culprits), std::move(text), 0);
  if (finding != nullptr) finding->hangs = true;
}

// A launcher that ends ranks because of one that ended may leave others for a while.
bool Judge::TellLostTogether(const StuckRanks& stuck) {
  std::vector<int> lost;
  for (int rank = 0; rank_lost_ && rank < history_.size; ++rank) {
    const Rank& mine = history_.ranks[Index(rank)];
    if (mine.lost && !mine.finalized && !mine.in_group) lost.push_back(rank);
  }
  if (lost.empty()) return false;
  const Wait& first = stuck.waits.front();
  std::string text = fmt::format(
      "rank {} ended without MPI_Finalize{}; rank {} waits {}", fmt::join(lost, ", rank "),
      lost.size() > 1 ? ", and nobody saw which first" : "", first.rank, Describe(first));
  TellHang(Cause::kLostRank, std::move(lost), std::move(text));
  return true;
}

// A message that is there, and would fit but for its tag or communicator.
bool Judge::TellNearMiss(const Wait& wait) {
  const Claims claims(history_);
  for (const Need& need : wait.needs) {
    if (!Receives(*need.about)) continue;
    bool other_comm = false;
    const Message* const miss = claims.NearMiss(wait.rank, *need.about, &other_comm);
    if (!miss) continue;
    const std::string came = other_comm
                                 ? "the message was sent on another communicator"
                                 : fmt::format("the message came with tag {}", miss->sent.tag);
    TellHang(other_comm ? Cause::kCommunicatorMismatch : Cause::kTagMismatch,
             {wait.rank, miss->source},
             fmt::format("rank {} waits {}; {}", wait.rank, Describe(wait.rank, need.about), came));
    return true;
  }
  return false;
}

bool Judge::WouldFree(const Event& send, int rank, const Event& receive) const {
  return send.comm == receive.comm && history_.WorldRank(send.comm, send.peer) == rank &&
         (receive.tag == events::kAnyTag || receive.tag == send.tag);
}

// A send that was prepared and never started, which would free this one.
bool Judge::TellNeverStarted(const Wait& wait) {
  for (const Need& need : wait.needs) {
    if (!Receives(*need.about)) continue;
    for (const int other : need.any_of) {
      for (const auto& [number, request] : history_.ranks[Index(other)].requests) {
        if (request.started || Receives(request.event)) continue;
        if (!WouldFree(request.event, wait.rank, *need.about)) continue;
        TellHang(Cause::kNeverStarted, {other},
                 fmt::format("rank {} never starts its {} of {}; rank {} waits {}", other,
                             FactsOf(request.event.call).name, At(other, request.event.site),
                             wait.rank, Describe(wait)));
        return true;
      }
    }
  }
  return false;
}

// Of a circle, nobody knows who should have acted: all of its ranks are named.
void Judge::TellDeadlock(const StuckRanks& stuck, const std::vector<const Wait*>& heart) {
  const Wait& first = *heart.front();
  const Need& need = first.main();
  const Wait* const second = heart.size() > 1 ? heart[1] : nullptr;
  if (!second && need.any_of.empty()) {
    return TellHang(Cause::kDeadlock, {first.rank},
                    fmt::format("rank {} waits {}; nobody else is there to free it", first.rank,
                                Describe(first)));
  }
  const int other = second ? second->rank : need.any_of.front();
  const Event* const theirs = second ? second->main().about : nullptr;
  const bool collectives = theirs && need.about->call == theirs->call &&
                           FactsOf(theirs->call).sync != events::Sync::kNone &&
                           !HasCallersOnly(theirs->call);
  const Cause cause = collectives && need.about->comm != theirs->comm ? Cause::kCommunicatorMismatch
                                                                      : Cause::kDeadlock;
  std::vector<int> culprits = {first.rank, other};
  for (const Wait* const wait : heart) culprits.push_back(wait->rank);
  std::string text = fmt::format("rank {} waits {}; rank {} is {}", first.rank, Describe(first),
                                 other, second ? Describe(*second) : Describe(other));
  if (stuck.waits.size() > 2) text += fmt::format("; {} ranks are stuck", stuck.waits.size());
  TellHang(cause, std::move(culprits), std::move(text));
}

void Judge::TellUnfinished(int rank) {
  for (const auto& [number, request] : history_.ranks[Index(rank)].requests) {
    const char* const name = FactsOf(request.event.call).name;
    const std::string where = At(rank, request.event.site);
    if (request.active) {
      Add(Cause::kUnfinishedRequest, {rank},
          fmt::format("rank {} never waits for its {} at {}", rank, name, where),
          request.event.site);
    } else if (request.persistent && request.waited && !request.started) {
      Add(Cause::kNeverStarted, {rank},
          fmt::format("rank {} waits for its {} of {}, which it never started", rank, name, where),
          request.event.site);
    }
  }
}

void Judge::TellLeaks(int rank) {
  if (!options_.leaks) return;
  constexpr std::pair<Cause, const char*> kLeaks[] = {{Cause::kCommunicatorLeak, "communicators"},
                                                      {Cause::kDatatypeLeak, "datatypes"},
                                                      {Cause::kOperatorLeak, "operators"},
                                                      {Cause::kGroupLeak, "groups"},
                                                      {Cause::kWindowLeak, "windows"},
                                                      {Cause::kFileLeak, "files"}};
  const Rank& mine = history_.ranks[Index(rank)];
  std::map<Object, std::pair<int, const Event*>> left;
  for (const auto& [number, event] : mine.objects) {
    auto& [count, first] = left[event.object];
    if (count++ == 0) first = &event;
  }
  for (const auto& [object, counted] : left) {
    const auto& [cause, plural] = kLeaks[static_cast<std::size_t>(object)];
    const auto& [count, first] = counted;
    Add(cause, {rank},
        fmt::format("rank {} never frees {} of its {}; the first is of {} at {}", rank, count,
                    plural, FactsOf(first->call).name, At(rank, first->site)),
        first->site);
  }
  for (const auto& [number, request] : mine.requests) {
    if (!request.persistent || request.active) continue;
    Add(Cause::kRequestLeak, {rank},
        fmt::format("rank {} never frees its {} of {}", rank, FactsOf(request.event.call).name,
                    At(rank, request.event.site)),
        request.event.site);
  }
}

// Only when every rank is in MPI_Finalize: then nobody receives any more.
void Judge::TellLostMessages() {
  const bool over = std::all_of(history_.ranks.begin(), history_.ranks.end(),
                                [](const Rank& rank) { return rank.finalizing; });
  if (!over) return;
  const Claims claims(history_);
  for (const auto& [key, channel] : history_.channels) {
    if (channel.compared_from == kNever) continue;
    for (const Message& message : channel.sent) {
      if (claims.Wanted(message)) continue;  // a request received it, or may have
      const Event& sent = message.sent;
      Add(Cause::kLostMessage, {message.source},
          fmt::format("rank {} sends to rank {} in {} at {}; nobody receives it", message.source,
                      history_.WorldRank(sent.comm, sent.peer), FactsOf(sent.call).name,
                      At(message.source, sent.site)),
          sent.site);
    }
  }
}

}  // namespace lockstep::watch::judge
