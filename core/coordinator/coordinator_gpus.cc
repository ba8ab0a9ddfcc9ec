// What the coordinator learns of GPUs and of the logs of those who use them.
#include <algorithm>
#include <utility>

#include "core/coordinator/coordinator_impl.h"
#include "core/verdict/device_position.h"

namespace lockstep::coordinator {
namespace {

// A launch that starts workers for hours keeps the newest.
constexpr std::size_t kMostLogs = 4096;
// Of each GPU, as evidence: a minute of them.
constexpr std::size_t kEvidenceSamples = 60;

}  // namespace

void CoordinatorImpl::OnLog(const std::string& payload) {
  auto report = control::Decode<control::LogReport>(payload);
  if (!report) return;
  if (logs_.size() >= kMostLogs) logs_.erase(logs_.begin());
  logs_.push_back(std::move(report->log));
}

void CoordinatorImpl::AskGpus(std::size_t most, Deadline deadline) {
  const std::uint64_t request = ++request_;
  for (Member& member : members_) member.gpus = {};
  OrderAll(control::GpusOrder{request, most});
  AwaitMembers(deadline, [&](const Member& m) { return m.answered >= request; });
}

std::vector<journal::GpuSamples> CoordinatorImpl::ReadGpus(std::size_t most, Deadline deadline) {
  std::vector<journal::GpuSamples> hosts;
  if (options_.gpu_sample_seconds <= 0) return hosts;
  AskGpus(most, deadline);
  for (Member& member : members_) {
    if (!member.gpus.samples.empty()) hosts.push_back(std::move(member.gpus));
  }
  return hosts;
}

// One agent of each host has the samples, which are evidence of all ranks on it.
void CoordinatorImpl::DescribeGpus(std::vector<verdict::RankEvidence>& evidence,
                                   Deadline deadline) {
  // Of a process that is gone its GPU's driver says nothing.
  const auto tells = [](const verdict::RankEvidence& rank) {
    return !rank.gpu_bus.empty() && (rank.state == verdict::ProcessState::kRunning ||
                                     rank.state == verdict::ProcessState::kStopped);
  };
  const bool any = std::any_of(evidence.begin(), evidence.end(), tells);
  if (!any || options_.gpu_sample_seconds <= 0) return;
  AskGpus(kEvidenceSamples, deadline);
  for (verdict::RankEvidence& rank : evidence) {
    if (!tells(rank)) continue;
    const control::AgentInfo& own = agents_[static_cast<std::size_t>(rank.rank)];
    const Ticks newest = rank.journal.events.empty() ? 0 : rank.journal.events.back().ticks;
    for (std::size_t i = 0; i < members_.size() && rank.gpu.empty(); ++i) {
      const bool same_host = agents_[i].host == own.host && agents_[i].boot_id == own.boot_id;
      if (!same_host) continue;
      const Member& member = members_[i];
      rank.gpu =
          verdict::DescribeGpuActivity(member.gpus, rank.gpu_bus, newest, member.gpu_age_seconds);
    }
  }
}

}  // namespace lockstep::coordinator
