// What an agent knows of its rank, and keeps when the worker is gone.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/agent/evidence.h"
#include "core/agent/rank_agent.h"
#include "core/agent/worker_log.h"
#include "core/control/worker_card.h"
#include "core/journal/device_marks.h"

namespace lockstep::agent {
namespace {

// Less than a glance may take: whoever asked hears of the others in time.
constexpr double kEndingSeconds = 0.5;

}  // namespace

void RankAgent::KeepLog() {
  const std::string path = control::ReadCard(segment_->card()).log_file;
  if (path.empty()) return;
  journal::WorkerLog log = ReadLogEnd(path);
  if (log.text.empty()) return;
  log.rank = context_.rank;
  log.lifetime = lifetime_;
  Tell(control::LogReport{std::move(log)});
}

journal::GpuSamples RankAgent::ReadGpus(std::size_t most, double& age_seconds) const {
  journal::GpuSamples samples;
  if (gpus_) {
    samples = gpus_->Newest(most);
    age_seconds = gpus_->AgeSeconds();
  }
  samples.rank = context_.rank;
  return samples;
}

journal::Journal RankAgent::ReadJournal(std::size_t most) const {
  journal::Journal journal;
  if (!journal_) return journal;
  const std::size_t fits = control::kMaxPayloadBytes / sizeof(journal::JournalEvent);
  journal = journal_->Newest(std::min(most, fits));
  if (death_ && !ending_) {
    journal::JournalEvent death;
    death.index = journal.events.empty() ? 1 : journal.events.back().index + 1;
    death.ticks = died_;
    death.kind = journal::EventKind::kDeath;
    death.value = *death_;
    if (!journal.events.empty()) {
      death.case_index = journal.events.back().case_index;
      death.phase = journal.events.back().phase;
    }
    journal.events.push_back(death);
  }
  return journal;
}

// Peers of a process that is ending have lost it already: a moment later it is known how.
void RankAgent::AwaitEnd(Deadline deadline) {
  const Deadline until = deadline.Earlier(Deadline::AfterSeconds(kEndingSeconds));
  const timespec pause{0, 1'000'000};
  while (has_worker() && IsEnding(child_->pid()) && !until.Passed()) {
    nanosleep(&pause, nullptr);
    OnChildChange();
  }
}

verdict::RankEvidence RankAgent::Evidence(Deadline deadline, bool system) {
  OnChildChange();
  AwaitEnd(deadline);
  verdict::RankEvidence evidence;
  evidence.rank = context_.rank;
  evidence.state = state_;
  evidence.exit_code = exit_code_;
  evidence.signal = signal_;
  evidence.journal = ReadJournal(control::kEvidenceEvents);
  const std::optional<journal::JournalEvent> last =
      journal_ ? journal_->Last() : std::optional<journal::JournalEvent>();
  // Without a worker, or with one that has not been told to begin, a rank owes nothing.
  const bool without_worker = child_ == nullptr || awaits_order_;
  evidence.idle = without_worker || (last && last->kind == journal::EventKind::kIdle);
  LookForProgress(last);
  if (journal_) evidence.seconds_silent = SecondsSilent(last);
  // A glance of a launch without a plugin asks nobody for links.
  if (system || plugin_) LookAtSockets();
  evidence.sockets = sockets_;
  if (plugin_) evidence.echo_s = plugin_->EchoSeconds();
  if (segment_) {
    evidence.device = journal::ReadDeviceMarks(segment_->device_marks());
    evidence.gpu_bus = control::ReadCard(segment_->card()).gpu_bus;
  }
  if (state_ == verdict::ProcessState::kStopped) {
    evidence.system = fmt::format("stopped by signal {} (SIG{})", signal_, sigabbrev_np(signal_));
  } else if (system && has_worker()) {
    const SystemEvidence seen = LookAt(child_->pid(), deadline, last_call_);
    last_call_ = seen.call;
    evidence.system = seen.text;
    evidence.asleep = seen.asleep;
  }
  return evidence;
}

}  // namespace lockstep::agent
