#include "stress/run/sighting.h"

#include <algorithm>
#include <tuple>

namespace lockstep::stress::run {
namespace {

auto SignatureOf(const journal::JournalEvent& event) {
  const collective::CollectiveInfo& info = collective::InfoOf(event.collective);
  const bool data = event.collective != collective::Collective::kBarrier;
  return std::tuple(
      event.collective, data ? event.type : collective::DataType::kF32, data ? event.count : 0,
      info.reduces ? event.reduction : collective::Reduction::kSum, info.rooted ? event.root : 0);
}

// The first event of the collective in that position, if the rank called one.
const journal::JournalEvent* CallAt(const verdict::RankEvidence& rank,
                                    const journal::JournalEvent& position) {
  const auto& events = rank.journal.events;
  const auto found = std::ranges::find_if(events, [&](const journal::JournalEvent& event) {
    return event.kind == journal::EventKind::kEnqueue &&
           event.communicator == position.communicator && event.sequence == position.sequence;
  });
  return found == events.end() ? nullptr : &*found;
}

}  // namespace

std::optional<Sighting> SightMismatch(const std::vector<verdict::RankEvidence>& evidence,
                                      const verdict::Judgement& judgement, Ticks now) {
  if (judgement.findings.empty()) return std::nullopt;
  const verdict::Finding& first = judgement.findings.front();
  if (!first.proved || !first.operation) return std::nullopt;
  std::vector<const journal::JournalEvent*> calls;
  for (const verdict::RankEvidence& rank : evidence) {
    if (const journal::JournalEvent* call = CallAt(rank, *first.operation)) calls.push_back(call);
  }
  std::ranges::sort(calls, [](const auto* a, const auto* b) { return a->ticks < b->ticks; });
  const auto other = std::ranges::find_if(calls, [&](const journal::JournalEvent* call) {
    return SignatureOf(*call) != SignatureOf(*calls.front());
  });
  if (other == calls.end()) return std::nullopt;
  return Sighting{first.cause, *first.operation, (*other)->ticks, now};
}

bool Confirms(const verdict::Judgement& judgement, const Sighting& sighting) {
  return std::ranges::any_of(judgement.findings, [&](const verdict::Finding& finding) {
    return finding.proved && finding.operation && finding.cause == sighting.cause &&
           finding.operation->communicator == sighting.operation.communicator &&
           finding.operation->sequence == sighting.operation.sequence;
  });
}

}  // namespace lockstep::stress::run
