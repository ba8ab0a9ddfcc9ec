// What is known of all ranks: their agents are asked, and answer or are lost.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/coordinator/clock_prober.h"
#include "core/coordinator/membership.h"

namespace lockstep::coordinator {

// The calls are those of Coordinator.
class EvidenceCollector {
 public:
  // `gpus`: samples of GPUs are taken.
  EvidenceCollector(Membership& members, const ClockProber& clocks, bool gpus)
      : members_(members),
        clocks_(clocks),
        samples_gpus_(gpus),
        answers_(static_cast<std::size_t>(members.size())) {}

  // `system`: with what the operating system says.
  std::vector<verdict::RankEvidence> Collect(bool system);
  std::vector<journal::Journal> Journals(std::size_t most);
  std::vector<journal::GpuSamples> ReadGpus(std::size_t most);
  std::vector<journal::WorkerLog> TakeLogs() { return std::exchange(logs_, {}); }

  // False: it is about something else.
  bool OnReport(int rank, control::FrameType type, const std::string& payload);

 private:
  struct Answer {
    verdict::RankEvidence evidence;
    journal::Journal journal;
    journal::GpuSamples gpus;
    double gpu_age_seconds = 0;  // of the newest sample
  };
  void AskGpus(std::size_t most);
  void DescribeGpus(std::vector<verdict::RankEvidence>& evidence);
  void OnLog(const std::string& payload);

  Membership& members_;
  const ClockProber& clocks_;
  const bool samples_gpus_;
  std::vector<Answer> answers_;  // the newest, one a rank
  std::vector<journal::WorkerLog> logs_;
};

}  // namespace lockstep::coordinator
