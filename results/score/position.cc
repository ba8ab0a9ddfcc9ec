// Replays the histories of all ranks side by side, call by call, until one call was not the same
// everywhere or was not left. It shares no code with the judge, so that it can contradict it.
#include <algorithm>
#include <tuple>

#include "core/journal/purpose.h"
#include "results/score/trials.h"

namespace lockstep::results::score {
namespace {

struct Call {
  journal::JournalEvent event;
  bool left = false;  // in order
};
using Calls = std::map<std::int64_t, Call>;  // by sequence, of one rank on one communicator

bool IsOneSided(const journal::JournalEvent& event) {
  return event.collective == collective::Collective::kSend ||
         event.collective == collective::Collective::kRecv;
}

// What the program wanted with it, if that was told. A rank that has joined answers for a bucket.
journal::Annotation IntentOf(const journal::JournalEvent& event) {
  journal::Annotation intent = journal::UnpackAnnotation(event.value);
  intent.iteration = -1;  // ranks count their own
  if (intent.purpose == journal::Purpose::kJoinShadowBucket)
    intent.purpose = journal::Purpose::kBucket;
  return intent.purpose == journal::Purpose::kStep ? journal::Annotation() : intent;
}

bool Alike(const journal::JournalEvent& a, const journal::JournalEvent& b) {
  if (IsOneSided(a) && IsOneSided(b)) return true;
  const auto call = [](const journal::JournalEvent& event) {
    return std::tuple(event.collective, event.type, event.count, event.reduction, event.root);
  };
  if (call(a) != call(b)) return false;
  const journal::Annotation of_a = IntentOf(a), of_b = IntentOf(b);
  const bool told =
      of_a.purpose != journal::Purpose::kNone && of_b.purpose != journal::Purpose::kNone;
  return !told || of_a == of_b;
}

std::map<int, Calls> CallsOf(const store::RankHistory& history) {
  std::map<int, Calls> calls;
  for (const journal::JournalEvent& event : history.events) {
    const auto sequence = static_cast<std::int64_t>(event.sequence);
    if (event.kind == journal::EventKind::kEnqueue) calls[event.communicator][sequence] = {event};
    if (event.kind != journal::EventKind::kEnd) continue;
    const auto begun = calls[event.communicator].find(sequence);
    if (begun != calls[event.communicator].end()) begun->second.left = true;
  }
  return calls;
}

// Whether all ranks left the call of that sequence, and it was the same one.
bool Sound(const std::vector<const Calls*>& ranks, std::int64_t sequence) {
  const journal::JournalEvent* first = nullptr;
  for (const Calls* calls : ranks) {
    const auto call = calls->find(sequence);
    if (call == calls->end() || !call->second.left) return false;
    if (first == nullptr) first = &call->second.event;
    if (!Alike(*first, call->second.event)) return false;
  }
  return true;
}

}  // namespace

std::map<int, std::int64_t> BrokenPositions(
    const std::vector<const store::RankHistory*>& histories) {
  static const Calls kNone;
  std::map<int, std::vector<const Calls*>> by_communicator;
  std::vector<std::map<int, Calls>> calls;
  bool missed = false;
  for (const store::RankHistory* history : histories) {
    calls.push_back(CallsOf(*history));
    missed = missed || history->missed > 0;
  }
  for (const auto& rank : calls) {
    for (const auto& [communicator, own] : rank) by_communicator[communicator].push_back(&own);
  }
  if (!by_communicator.empty()) by_communicator[0].resize(calls.size(), &kNone);
  std::map<int, std::int64_t> broken;
  for (const auto& [communicator, ranks] : by_communicator) {
    std::int64_t from = 0, to = -1;
    for (const Calls* own : ranks) {
      if (own->empty()) continue;
      if (missed) from = std::max(from, own->begin()->first);
      to = std::max(to, own->rbegin()->first);
    }
    while (from <= to && Sound(ranks, from)) ++from;
    if (from <= to) broken[communicator] = from;
  }
  return broken;
}

}  // namespace lockstep::results::score
