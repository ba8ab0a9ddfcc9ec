// Questions go to all agents at once; whoever is lost before its answer is told as such. Stamps are
// put on the coordinator's clock as they come. A malformed answer is none.
#include "core/coordinator/evidence_collector.h"

#include <algorithm>

#include "core/verdict/device_position.h"

namespace lockstep::coordinator {
namespace {

// A launch that starts workers for hours keeps the newest.
constexpr std::size_t kMostLogs = 4096;
// Of each GPU, as evidence: a minute of them.
constexpr std::size_t kEvidenceSamples = 60;
// For an agent to read its worker's stack.
constexpr std::int64_t kStackNs = 3'750'000'000;

}  // namespace

bool EvidenceCollector::OnReport(int rank, control::FrameType type, const std::string& payload) {
  Answer& answer = answers_[static_cast<std::size_t>(rank)];
  if (type == control::FrameType::kEvidence) {
    auto report = control::Decode<control::EvidenceReport>(payload);
    if (!report) return true;
    answer.evidence = std::move(report->evidence);
    clocks_.Translate(rank, answer.evidence.journal);
    members_.NoteAnswer(rank, report->request);
  } else if (type == control::FrameType::kJournalRead) {
    auto report = control::Decode<control::JournalReport>(payload);
    if (!report) return true;
    answer.journal = std::move(report->journal);
    clocks_.Translate(rank, answer.journal);
    members_.NoteAnswer(rank, report->request);
  } else if (type == control::FrameType::kGpusRead) {
    auto report = control::Decode<control::GpusReport>(payload);
    if (!report) return true;
    answer.gpus = std::move(report->samples);
    answer.gpu_age_seconds = report->age_seconds;
    clocks_.Translate(rank, answer.gpus);
    members_.NoteAnswer(rank, report->request);
  } else if (type == control::FrameType::kLog) {
    OnLog(payload);
  } else {
    return false;
  }
  return true;
}

void EvidenceCollector::OnLog(const std::string& payload) {
  auto report = control::Decode<control::LogReport>(payload);
  if (!report) return;
  if (logs_.size() >= kMostLogs) logs_.erase(logs_.begin());
  logs_.push_back(std::move(report->log));
}

std::vector<verdict::RankEvidence> EvidenceCollector::Collect(bool system) {
  const std::uint64_t request = members_.NewRequest();
  const std::int64_t asked_ns = MonotonicNs();
  members_.OrderAll(control::CollectOrder{request, kStackNs, system});
  members_.AwaitAnswers(request);
  if (!system) members_.NoteWait(MonotonicNs() - asked_ns);
  std::vector<verdict::RankEvidence> all;
  for (int rank = 0; rank < members_.size(); ++rank) {
    verdict::RankEvidence evidence;
    evidence.state = verdict::ProcessState::kLost;
    evidence.system = "its agent does not answer";
    evidence.host = members_.agents()[static_cast<std::size_t>(rank)].host;
    if (members_.Answered(rank, request)) {
      evidence = answers_[static_cast<std::size_t>(rank)].evidence;
    } else {
      members_.Suspect(rank);
    }
    evidence.rank = rank;
    all.push_back(std::move(evidence));
  }
  if (system) DescribeGpus(all);
  return all;
}

std::vector<journal::Journal> EvidenceCollector::Journals(std::size_t most) {
  const std::uint64_t request = members_.NewRequest();
  members_.OrderAll(control::JournalOrder{request, most});
  members_.AwaitAnswers(request);
  std::vector<journal::Journal> all(answers_.size());
  for (int rank = 0; rank < members_.size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (members_.Answered(rank, request)) all[index] = std::move(answers_[index].journal);
  }
  return all;
}

void EvidenceCollector::AskGpus(std::size_t most) {
  const std::uint64_t request = members_.NewRequest();
  for (Answer& answer : answers_) answer.gpus = {};
  members_.OrderAll(control::GpusOrder{request, most});
  members_.AwaitAnswers(request);
}

std::vector<journal::GpuSamples> EvidenceCollector::ReadGpus(std::size_t most) {
  std::vector<journal::GpuSamples> hosts;
  if (!samples_gpus_) return hosts;
  AskGpus(most);
  for (Answer& answer : answers_) {
    if (!answer.gpus.samples.empty()) hosts.push_back(std::move(answer.gpus));
  }
  return hosts;
}

// One agent of each host has the samples, which are evidence of all ranks on it.
void EvidenceCollector::DescribeGpus(std::vector<verdict::RankEvidence>& evidence) {
  // Of a process that is gone its GPU's driver says nothing.
  const auto tells = [](const verdict::RankEvidence& rank) {
    return !rank.gpu_bus.empty() && (rank.state == verdict::ProcessState::kRunning ||
                                     rank.state == verdict::ProcessState::kStopped);
  };
  if (!samples_gpus_ || std::none_of(evidence.begin(), evidence.end(), tells)) return;
  AskGpus(kEvidenceSamples);
  const std::vector<control::AgentInfo>& agents = members_.agents();
  for (verdict::RankEvidence& rank : evidence) {
    if (!tells(rank)) continue;
    const control::AgentInfo& own = agents[static_cast<std::size_t>(rank.rank)];
    const Ticks newest = rank.journal.events.empty() ? 0 : rank.journal.events.back().ticks;
    for (std::size_t i = 0; i < answers_.size() && rank.gpu.empty(); ++i) {
      if (agents[i].host != own.host || agents[i].boot_id != own.boot_id) continue;
      rank.gpu = verdict::DescribeGpuActivity(answers_[i].gpus, rank.gpu_bus, newest,
                                              answers_[i].gpu_age_seconds);
    }
  }
}

}  // namespace lockstep::coordinator
