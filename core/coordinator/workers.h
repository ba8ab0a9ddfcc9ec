// The workers of all ranks: they are started together or one by one, meet, and are ended.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/control/private_shm.h"
#include "core/control/worker_setup.h"
#include "core/coordinator/meeting_place.h"
#include "core/coordinator/membership.h"

namespace lockstep::coordinator {

// The calls are those of Coordinator.
class Workers {
 public:
  Workers(Membership& members, EventQueue& events, bool own_mpi)
      : members_(members),
        events_(events),
        own_mpi_(own_mpi),
        workers_(static_cast<std::size_t>(members.size())) {}

  Status StartAll(const std::vector<control::WorkerSetup>& setups);
  Status Start(int rank);
  int lifetime() const { return lifetime_; }
  void Signal(int rank, int signal);
  // The newest that the coordinator had sent to it; 0: none.
  int sent_signal(int rank) const { return workers_[static_cast<std::size_t>(rank)].sent_signal; }
  void EndAll();
  void End(int rank);
  bool AwaitExits(Deadline deadline);

  // False: it is about something else.
  bool OnReport(int rank, control::FrameType type, const std::string& payload);

 private:
  enum class State { kNone, kRunning, kExited, kSignalled };
  struct Worker {  // of this lifetime
    State state = State::kNone;
    int sent_signal = 0;
    std::optional<control::StartOrder> order;  // the newest
    std::optional<Status> started;             // the answer to it
  };
  Worker& At(int rank) { return workers_[static_cast<std::size_t>(rank)]; }

  void Order(int rank);
  Status Started(int rank);  // what became of the newest order to start a worker
  void OnStarted(Worker& worker, const std::string& payload);
  void OnMeetingPut(const std::string& payload);
  void OnMeetingGet(int rank, const std::string& payload);

  Membership& members_;
  EventQueue& events_;
  const bool own_mpi_;
  std::vector<Worker> workers_;
  MeetingPlace meeting_;
  std::unique_ptr<control::PrivateShm> shm_;  // of this lifetime, if it has one
  int lifetime_ = -1;
};

}  // namespace lockstep::coordinator
