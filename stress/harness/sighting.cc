#include "stress/harness/sighting.h"

#include <algorithm>
#include <tuple>

namespace lockstep {
namespace {

auto SignatureOf(const JournalEvent& event) {
  const CollectiveInfo& info = InfoOf(event.collective);
  const bool data = event.collective != Collective::kBarrier;
  return std::tuple(event.collective, data ? event.type : DataType::kF32, data ? event.count : 0,
                    info.reduces ? event.reduction : Reduction::kSum,
                    info.rooted ? event.root : 0);
}

// The first event of the collective in that position, if the rank called one.
const JournalEvent* CallAt(const RankEvidence& rank, const JournalEvent& position) {
  const auto& events = rank.journal.events;
  const auto found = std::find_if(events.begin(), events.end(), [&](const JournalEvent& event) {
    return event.kind == EventKind::kEnqueue && event.communicator == position.communicator &&
           event.sequence == position.sequence;
  });
  return found == events.end() ? nullptr : &*found;
}

}  // namespace

std::optional<Sighting> SightMismatch(const std::vector<RankEvidence>& evidence,
                                      const Judgement& judgement, Ticks now) {
  if (judgement.findings.empty()) return std::nullopt;
  const Finding& first = judgement.findings.front();
  if (!first.proved || !first.operation) return std::nullopt;
  std::vector<const JournalEvent*> calls;
  for (const RankEvidence& rank : evidence) {
    if (const JournalEvent* call = CallAt(rank, *first.operation)) calls.push_back(call);
  }
  std::sort(calls.begin(), calls.end(),
            [](const auto* a, const auto* b) { return a->ticks < b->ticks; });
  const auto other = std::find_if(calls.begin(), calls.end(), [&](const JournalEvent* call) {
    return SignatureOf(*call) != SignatureOf(*calls.front());
  });
  if (other == calls.end()) return std::nullopt;
  return Sighting{first.cause, *first.operation, (*other)->ticks, now};
}

bool Confirms(const Judgement& judgement, const Sighting& sighting) {
  return std::any_of(judgement.findings.begin(), judgement.findings.end(),
                     [&](const Finding& finding) {
                       return finding.proved && finding.operation &&
                              finding.cause == sighting.cause &&
                              finding.operation->communicator == sighting.operation.communicator &&
                              finding.operation->sequence == sighting.operation.sequence;
                     });
}

}  // namespace lockstep
