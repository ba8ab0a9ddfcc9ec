// What is told of ranks that can never go on, and of what is left when a program ends.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

using events::Class;
using events::FactsOf;
using events::Object;

namespace {

// What a blocked call is really about: of a wait, its first request that is not over.
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
  const Rank& mine = history_.ranks[Index(rank)];
  if (mine.in_group) {
    if (!mine.open.empty()) return "in " + NamedMessage(rank, *Subject(mine));
    return mine.last.count2 == 0 ? "before its first collective"
                                 : "after " + Named(rank, mine.last);
  }
  if (mine.open.empty()) return mine.begun ? "outside MPI" : "before MPI_Init";
  const Event& open = mine.open.begin()->second.event;
  const Event& event = *Subject(mine);
  std::string text = fmt::format("in {}", FactsOf(open.call).name);
  if (&event != &open) text += fmt::format(" for {}", FactsOf(event.call).name);
  const Class kind = FactsOf(event.call).call_class;
  const bool message = Receives(event) || kind == Class::kSend || kind == Class::kPostSend ||
                       kind == Class::kPrepare;
  if (message) {
    const int peer = history_.WorldRank(event.comm, event.peer);
    text += Receives(event) ? " from " : " to ";
    text += event.peer == events::kAnySource ? "any" : fmt::format("rank {}", peer);
    if (event.tag != events::kAnyTag) text += fmt::format(", tag {},", event.tag);
  }
  return text + " at " + At(rank, open.site);
}

void Judge::Hangs(const StuckRanks& stuck, bool proved) {
  if (stuck.waits.empty() || Explained()) return;
  for (const Wait& wait : stuck.waits) {
    const Event* const event = Subject(history_.ranks[Index(wait.rank)]);
    if (!event || !Receives(*event)) continue;
    if (TellNearMiss(wait, *event, proved) || TellNeverStarted(wait, proved)) return;
  }
  TellDeadlock(stuck, proved);
}

void Judge::TellHang(Cause cause, std::vector<int> culprits, std::string text, bool proved) {
  Add(cause, std::move(culprits), std::move(text), 0, proved);
  if (!findings_.empty()) findings_.back().hangs = true;
}

// A message that is there, and would fit but for its tag or communicator.
bool Judge::TellNearMiss(const Wait& wait, const Event& receive, bool proved) {
  bool other_comm = false;
  const Event* const miss = NearMiss(history_, wait.rank, receive, &other_comm);
  if (!miss) return false;
  const std::string came = other_comm ? "the message was sent on another communicator"
                                      : fmt::format("the message came with tag {}", miss->tag);
  TellHang(other_comm ? Cause::kCommunicatorMismatch : Cause::kTagMismatch, {wait.rank},
           fmt::format("rank {} waits {}; {}", wait.rank, Describe(wait.rank), came), proved);
  return true;
}

// A send that was prepared and never started, of a rank that could free this one.
bool Judge::TellNeverStarted(const Wait& wait, bool proved) {
  for (const Need& need : wait.needs) {
    for (const int other : need.any_of) {
      for (const auto& [number, request] : history_.ranks[Index(other)].requests) {
        if (request.started || Receives(request.event)) continue;
        TellHang(Cause::kNeverStarted, {other},
                 fmt::format("rank {} never starts its {} of {}; rank {} waits {}", other,
                             FactsOf(request.event.call).name, At(other, request.event.site),
                             wait.rank, Describe(wait.rank)),
                 proved);
        return true;
      }
    }
  }
  return false;
}

void Judge::TellDeadlock(const StuckRanks& stuck, bool proved) {
  const int rank = stuck.waits.front().rank;
  const int other = stuck.waits.front().needs.front().any_of.front();
  const Event* const mine = Subject(history_.ranks[Index(rank)]);
  const Event* const theirs = Subject(history_.ranks[Index(other)]);
  const bool collectives = mine && theirs && mine->call == theirs->call &&
                           FactsOf(mine->call).sync != events::Sync::kNone;
  const Cause cause =
      collectives && mine->comm != theirs->comm ? Cause::kCommunicatorMismatch : Cause::kDeadlock;
  std::string text =
      fmt::format("rank {} waits {}; rank {} is {}", rank, Describe(rank), other, Describe(other));
  if (stuck.waits.size() > 2) text += fmt::format("; {} ranks are stuck", stuck.waits.size());
  TellHang(cause, {rank, other}, std::move(text), proved);
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
  for (const auto& [key, channel] : history_.channels) {
    for (const Message& message : channel.sent) {
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
