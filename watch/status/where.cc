// Events are read from the newest back. The first that enters or leaves a call tells where its
// thread is. What a Wait waits for was posted before: by requests' numbers.
#include "watch/status/where.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace lockstep::watch::status {

using events::Call;
using events::Class;
using events::FactsOf;
using events::Phase;

namespace {

bool Enters(const Event& event) { return events::BeforeLeft(event.phase) == Phase::kEnter; }

bool Posts(const Event& event) {
  if (!Enters(event) || event.request == 0) return false;
  const Class call_class = FactsOf(event.call).call_class;
  return call_class == Class::kPostSend || call_class == Class::kPostReceive ||
         call_class == Class::kPostExchange || call_class == Class::kPostLocal ||
         call_class == Class::kPrepare || call_class == Class::kPostCollective;
}

bool Waits(const ThreadNow& thread) {
  const Class call_class = FactsOf(thread.call.call).call_class;
  return thread.inside && (call_class == Class::kWaitAll || call_class == Class::kWaitAny);
}

// The requests of the Wait that was entered at `at`: the parts right before it, on its thread.
std::set<std::uint32_t> RequestsBefore(const std::vector<Event>& newest, std::size_t at) {
  std::set<std::uint32_t> requests;
  for (std::size_t i = at; i-- > 0;) {
    const Event& event = newest[i];
    if (event.thread != newest[at].thread) continue;
    if (event.phase != Phase::kPart) break;
    if (event.part == 0) requests.insert(event.request);
  }
  return requests;
}

void AddAwaited(const std::vector<Event>& newest, std::size_t at, ThreadNow& thread) {
  std::set<std::uint32_t> requests = RequestsBefore(newest, at);
  thread.requests = static_cast<int>(requests.size());
  for (std::size_t i = at; i-- > 0 && !requests.empty();) {
    if (Posts(newest[i]) && requests.erase(newest[i].request) > 0) {
      thread.awaited.push_back(newest[i]);
    }
  }
}

std::string Peer(const char* how, std::int32_t peer) {
  if (peer == events::kProcNull) return fmt::format(" {} MPI_PROC_NULL", how);
  return peer < 0 ? fmt::format(" {} any", how) : fmt::format(" {} {}", how, peer);
}

std::string Tag(std::int32_t tag) { return tag < 0 ? ", any tag" : fmt::format(", tag {}", tag); }

std::string DescribeCall(const Event& call) {
  const events::CallFacts& facts = FactsOf(call.call);
  const bool numbered = OfGroup(call.call) && facts.call_class == Class::kCollective;
  if (numbered) return fmt::format("{} {}", facts.name, call.count2);
  switch (facts.call_class) {
    case Class::kSend:
    case Class::kPostSend:
      return facts.name + Peer("to", call.peer) + Tag(call.tag);
    case Class::kReceive:
    case Class::kProbe:
    case Class::kExchange:
    case Class::kPostReceive:
    case Class::kPostExchange:
      return facts.name + Peer("from", call.peer) + Tag(call.tag);
    case Class::kPrepare: {
      const bool receives = (call.flags & events::kReceiving) != 0;
      return facts.name + Peer(receives ? "from" : "to", call.peer) + Tag(call.tag);
    }
    default:
      return call.peer >= 0 && facts.sync != events::Sync::kNone
                 ? fmt::format("{} root {}", facts.name, call.peer)
                 : facts.name;
  }
}

// What is said there last.
Event Newest(const std::vector<Event>& newest, std::size_t at) {
  const Event& event = newest[at];
  const bool whole = event.phase == Phase::kAgain && event.peer > 0 &&
                     static_cast<std::size_t>(event.peer) <= at && event.count > 0;
  return whole ? events::EventAgain(&event, event.count - 1) : event;
}

}  // namespace

std::vector<ThreadNow> WhereNow(const std::vector<Event>& newest) {
  std::map<std::uint16_t, ThreadNow> threads;
  for (std::size_t i = newest.size(); i-- > 0;) {
    const Event event = Newest(newest, i);
    const bool left = event.phase == Phase::kLeave || events::HasLeft(event.phase);
    if (!left && event.phase != Phase::kEnter) continue;
    const auto [found, fresh] = threads.try_emplace(event.thread);
    if (!fresh) continue;
    ThreadNow& thread = found->second;
    thread = {event.thread, !left, event, event.ticks, 0, {}};
    if (Waits(thread)) AddAwaited(newest, i, thread);
  }
  std::vector<ThreadNow> found;
  for (auto& [number, thread] : threads) found.push_back(std::move(thread));
  return found;
}

std::string Describe(const ThreadNow& thread) {
  std::string text = DescribeCall(thread.call);
  if (thread.requests > 1) text += fmt::format(" of {}", thread.requests);
  if (thread.awaited.empty()) return text;
  return text + ": " + DescribeCall(thread.awaited.front()) + (thread.requests > 1 ? ", ..." : "");
}

std::string NameOfComm(const Event& call) {
  if (call.comm == events::kWorldComm) return "world";
  if (call.comm <= events::kFreedComm) return "";
  if (OfGroup(call.call)) return fmt::format("group {}", call.comm - events::kWorldGroups);
  constexpr std::uint64_t kFourDigits = 0xffff;
  return fmt::format("c{:04x}", call.comm & kFourDigits);
}

}  // namespace lockstep::watch::status
