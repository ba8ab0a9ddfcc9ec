// How it comes into a rank's journal that a fault fired.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/comm/recorded.h"
#include "core/journal/journal.h"

namespace lockstep::stress::faults {

class FaultJournal {
 public:
  explicit FaultJournal(journal::JournalWriter& journal) : journal_(journal) {}
  // From now on the journal is written through it, as it writes there, too; nullptr: directly
  // again.
  void set_recorded(comm::RecordedCommunicator* recorded) { recorded_ = recorded; }

  void Note(std::size_t fault_index) {
    const journal::JournalEvent event{.value = static_cast<std::int64_t>(fault_index),
                                      .kind = journal::EventKind::kFault};
    if (recorded_ != nullptr) {
      recorded_->Note(event);
    } else {
      journal_.Append(event);
    }
  }

 private:
  journal::JournalWriter& journal_;
  comm::RecordedCommunicator* recorded_ = nullptr;
};

}  // namespace lockstep::stress::faults
