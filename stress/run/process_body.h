// A rank that is a process: what its faults do to it.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/comm/recorded.h"
#include "core/worker/worker_link.h"
#include "stress/faults/fault_gate.h"

namespace lockstep::stress::run {

class ProcessBody final : public faults::RankBody {
 public:
  explicit ProcessBody(worker::WorkerLink& link);
  // From now on the journal is written through it; nullptr: directly again.
  void set_recorded(comm::RecordedCommunicator* recorded) { recorded_ = recorded; }

  // Whose memory faults may take; outlives this.
  void set_device(device::Device* device) { device_ = device; }

  void Journal(std::size_t fault_index) override;
  Status ApplyOutside(std::size_t fault_index) override;
  void Exit(int code) override;
  double SecondsSinceStart() override;
  Status Sleep(std::int64_t ns) override;
  device::Device* device() override { return device_; }
  faults::RankMarks& marks() override { return marks_; }

 private:
  worker::WorkerLink& link_;
  comm::RecordedCommunicator* recorded_ = nullptr;
  device::Device* device_ = nullptr;
  std::mutex mutex_;  // of the link: faults of the library fire on the streams' threads
  std::int64_t began_ns_;
  faults::RankMarks marks_;
};

}  // namespace lockstep::stress::run
