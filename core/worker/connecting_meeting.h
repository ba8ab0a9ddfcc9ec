// Connecting goes from peer to peer. A rank that waits for one after the other is not silent.
#pragma once

#include <string>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"
#include "core/journal/journal.h"

namespace lockstep::worker {

// From Begin to End it journals Phase::kConnect whenever the meeting took or gave something. Nobody
// else may write to that journal meanwhile.
class ConnectingMeeting final : public comm::Meeting {
 public:
  explicit ConnectingMeeting(comm::Meeting& meeting) : meeting_(meeting) {}

  void Begin(journal::JournalWriter& journal) {
    journal_ = &journal;
    GetsOn();
  }
  void End() { journal_ = nullptr; }

  Status Put(const std::string& key, const std::string& value) override {
    LOCKSTEP_RETURN_IF_ERROR(meeting_.Put(key, value));
    GetsOn();
    return OkStatus();
  }
  Result<std::string> Get(const std::string& key, Deadline deadline) override {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string value, meeting_.Get(key, deadline));
    GetsOn();
    return value;
  }

 private:
  void GetsOn() {
    if (journal_ != nullptr) journal_->EnterPhase(journal::Phase::kConnect);
  }

  comm::Meeting& meeting_;
  journal::JournalWriter* journal_ = nullptr;
};

}  // namespace lockstep::worker
