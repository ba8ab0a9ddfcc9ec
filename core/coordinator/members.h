// What the coordinator keeps of each rank.
#ifndef LOCKSTEP_CORE_COORDINATOR_MEMBERS_H_
#define LOCKSTEP_CORE_COORDINATOR_MEMBERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/control/channel.h"
#include "core/control/private_shm.h"
#include "core/coordinator/coordinator.h"

namespace lockstep::coordinator {

struct Member {
  std::optional<control::Channel> channel;  // none: the coordinator's own rank
  bool lost = false;
  verdict::Loss loss = verdict::Loss::kNone;       // how; kLauncher, kTold: not lost, but will be
  bool told_alone = false;                         // kTold: and we were not
  verdict::Loss suspected = verdict::Loss::kNone;  // it did not answer in time
  std::int64_t heard_ns = 0;  // awake time (core/control/heartbeat_monitor.h) of its newest frame
  // Of the worker of this lifetime.
  enum class Worker { kNone, kRunning, kExited, kSignalled };
  Worker worker = Worker::kNone;
  int sent_signal = 0;      // the newest that the coordinator had sent to it
  std::string start_order;  // the newest
  // The newest answers.
  std::optional<Status> started;
  std::uint64_t answered = 0;  // request number
  verdict::RankEvidence evidence;
  journal::Journal journal;
  ClockRoundTrip clock;  // but for `sent`
  std::optional<control::ClockReading> clock_reading;
  journal::GpuSamples gpus;
  double gpu_age_seconds = 0;  // of the newest sample
};

// Makes a private /dev/shm for those of this host that ask for one, and tells their setups. None
// where nobody asks, or it cannot be had: then a fault that wants one says so.
inline std::unique_ptr<control::PrivateShm> LendPrivateShm(
    const std::vector<control::AgentInfo>& agents, std::vector<control::WorkerSetup>& setups) {
  std::unique_ptr<control::PrivateShm> shm;
  for (std::size_t rank = 0; rank < setups.size(); ++rank) {
    if (!setups[rank].private_shm || agents[rank].boot_id != agents[0].boot_id) continue;
    if (shm == nullptr) {
      Result<std::unique_ptr<control::PrivateShm>> made = control::PrivateShm::Create();
      if (!made.ok()) return nullptr;
      shm = std::move(made).value();
    }
    setups[rank].environment.push_back(std::string(control::kPrivateShmVariable) + "=" +
                                       std::to_string(shm->holder()));
  }
  return shm;
}

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
  const std::string& value(const std::string& key) const { return values_.at(key); }
  void Clear() { *this = MeetingPlace(); }

  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Waiting>> waiting_;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_CORE_COORDINATOR_MEMBERS_H_
