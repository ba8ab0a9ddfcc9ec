// The workers of all ranks: they are started together or one by one, meet, and are ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/control/facts.h"
#include "core/control/private_shm.h"
#include "core/coordinator/membership.h"

namespace lockstep::coordinator {

// The key-value store behind the workers' Meeting, for one lifetime.
class MeetingPlace {
 public:
  struct Waiting {
    int rank;
    std::uint64_t request;
  };
  // Returns who waited for the key. Keys are bounded in number, values in size, by their senders'
  // messages; a store above kMostBytes takes nothing more (the getters reach their deadlines).
  std::vector<Waiting> Put(const std::string& key, std::string value) {
    std::vector<Waiting> waiting;
    if (bytes_ + key.size() + value.size() > kMostBytes) return waiting;
    bytes_ += key.size() + value.size();
    values_[key] = std::move(value);
    if (const auto found = waiting_.find(key); found != waiting_.end()) {
      waiting = std::move(found->second);
      waiting_.erase(found);
    }
    return waiting;
  }
  // The value, or nothing: then (rank, request) is remembered.
  const std::string* Get(const std::string& key, Waiting who) {
    if (const auto found = values_.find(key); found != values_.end()) return &found->second;
    waiting_[key].push_back(who);
    return nullptr;
  }
  void Clear() { *this = MeetingPlace(); }

  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Waiting>> waiting_;
  std::size_t bytes_ = 0;
};

// The calls are those of Coordinator.
class Workers {
 public:
  Workers(Membership& members, EventQueue& events, bool own_mpi)
      : members_(members),
        events_(events),
        own_mpi_(own_mpi),
        workers_(static_cast<std::size_t>(members.size())) {}

  Status StartAll(const std::vector<WorkerSetup>& setups);
  Status Start(int rank);
  int lifetime() const { return lifetime_; }
  void Signal(int rank, int signal);
  // The newest that the coordinator had sent to it; 0: none.
  int sent_signal(int rank) const { return workers_[static_cast<std::size_t>(rank)].sent_signal; }
  void EndAll();
  void End(int rank);
  bool AwaitExits(Deadline deadline);

  // False: it is about something else.
  bool OnReport(int rank, FrameType type, const std::string& payload);

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
