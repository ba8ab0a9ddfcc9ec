// Test material: events of which every word follows from the index, so that a torn one shows.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "core/base/random.h"
#include "core/journal/event.h"

namespace lockstep::journal {

// What a self-describing writer, which begins no case and enters no phase, appends as number
// `index` (from 1).
inline JournalEvent SelfDescribingEvent(std::uint64_t index) {
  Random random(index);
  JournalEvent event;
  event.index = index;
  event.ticks = random.Next() | 1;
  event.sequence = random.Next();
  event.count = static_cast<std::int64_t>(random.Next());
  event.nth = static_cast<std::uint32_t>(random.Next());
  event.messages_before = static_cast<std::uint32_t>(random.Next());
  event.value = static_cast<std::int64_t>(random.Next());
  event.root = static_cast<std::int32_t>(random.Next());
  event.kind = random.Below(2) == 0 ? EventKind::kStart : EventKind::kEnd;
  event.communicator = static_cast<std::uint16_t>(random.Next());
  event.collective = static_cast<collective::Collective>(random.Below(8));
  event.type = static_cast<collective::DataType>(random.Below(collective::kDataTypeCount));
  event.reduction = static_cast<collective::Reduction>(random.Below(4));
  return event;
}

inline bool IsWhole(const JournalEvent& event) {
  using Words = std::array<std::uint64_t, 8>;
  return std::bit_cast<Words>(event) == std::bit_cast<Words>(SelfDescribingEvent(event.index));
}

}  // namespace lockstep::journal
