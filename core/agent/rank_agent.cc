// The agent of a rank obeys orders and reports what it sees. It starts a worker, passes on what
// that says, ends it and reaps it. Evidence is the journal in shared memory, sockets, and the
// process as the operating system sees it. Nothing here waits for the worker.
#include "core/agent/rank_agent.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/agent/evidence.h"
#include "core/base/now.h"
#include "core/base/print_stderr.h"
#include "core/control/facts.h"
#include "core/control/machine.h"
#include "core/control/open_files.h"
#include "core/journal/device_marks.h"
#include "core/journal/journal.h"

namespace lockstep::agent {
namespace {

// Less than a glance may take: whoever asked hears of the others in time.
constexpr double kEndingSeconds = 0.5;
constexpr int kMostLooksPerSearch = 16;

}  // namespace

RankAgent::RankAgent(const control::LaunchContext& context, const AgentOptions& options,
                     Report report)
    : context_(context),
      options_(options),
      report_(std::move(report)),
      scale_(CalibrateTicks()),
      silence_(options, scale_, context_.size) {
  control::RaiseOpenFiles();
  if (context_.local_rank == 0) gpus_ = GpuWatch::Start({options_.gpu_sample_seconds});
  if (options_.plugin) plugin_ = options_.plugin(context_.rank);
}

Status RankAgent::Spawn(control::ChildRole::Kind kind, int lifetime,
                        const control::WorkerSetup& setup) {
  // Until there is a new one, the rank has no worker: which is no worker that has left.
  child_.reset();
  worker_.process = ProcessState::kRunning;
  LOCKSTEP_ASSIGN_OR_RETURN(segment_, control::Segment::Create(options_.journal_capacity,
                                                               options_.outbox_capacity_bytes));
  outbox_.emplace(segment_->outbox(), segment_->outbox_capacity());
  journal_.emplace(segment_->journal(), segment_->journal_capacity());
  worker_ = WorkerState();
  worker_.started = NowTicks();
  silence_.Begin();
  ending_ = false;
  lifetime_ = lifetime;
  const control::ChildRole role = {.kind = kind,
                                   .segment_fd = segment_->fd(),
                                   .rank = context_.rank,
                                   .size = context_.size,
                                   .local_rank = context_.local_rank,
                                   .lifetime = lifetime};
  looks_.reset();
  sockets_.clear();
  std::vector<std::string> environment;
  if (plugin_) environment = plugin_->BeginLifetime(lifetime);
  LOCKSTEP_RETURN_IF_ERROR(faults_.Prepare(setup, environment));
  // Without a name in any folder, so that nothing of it stays whoever is killed.
  log_ = Fd(memfd_create("lockstep-log", MFD_CLOEXEC));
  if (!log_.valid()) return EnvironmentError("no memory or descriptor for a log of the worker");
  environment.push_back(fmt::format("{}={}", journal::kWorkerLogVariable, LogPath()));
  LOCKSTEP_ASSIGN_OR_RETURN(child_, Child::Spawn(role, {segment_->fd(), log_.get()}, environment));
  faults_.Begin(child_->pid());
  if (plugin_) plugin_->OnStarted(child_->pid());
  return OkStatus();
}

Result<Child*> RankAgent::StartExchangingWorker() {
  LOCKSTEP_RETURN_IF_ERROR(Spawn(control::ChildRole::Kind::kExchangingWorker, 0, {}));
  awaits_order_ = true;
  return child_.get();
}

Status RankAgent::Start(int lifetime, const control::WorkerSetup& setup) {
  if (awaits_order_) {
    awaits_order_ = false;
    if (!setup.empty()) {
      return Unsupported(
          "a fault needs a worker that is started for it, but across hosts the worker of "
          "--backend=mpi runs before; run the scenario on one host");
    }
    worker_.started = NowTicks();
    child_->channel().Send(FrameType::kProceed);
    return OkStatus();
  }
  End();
  return Spawn(control::ChildRole::Kind::kWorker, lifetime, setup);
}

int RankAgent::channel_fd() const {
  return child_ && child_->channel().open() ? child_->channel().fd() : -1;
}

short RankAgent::poll_events() const { return child_ ? child_->channel().poll_events() : short{0}; }

// Orders are those of a coordinator that runs the same program.
template <typename F>
F RankAgent::Order(const control::Frame& frame) {
  std::optional<F> order = control::Decode<F>(frame.payload);
  LOCKSTEP_CHECK(order.has_value(), fmt::format("an order of type {}", frame.type));
  return *std::move(order);
}

void RankAgent::Obey(const control::Frame& frame) {
  using Type = FrameType;
  switch (static_cast<Type>(frame.type)) {
    case Type::kStartWorker: {
      const auto order = Order<control::StartOrder>(frame);
      return Tell(control::StartedReport{Start(order.lifetime, order.setup)});
    }
    case Type::kToWorker:
    case Type::kMeetingValue:
      if (child_) child_->channel().Send(frame.type, frame.payload);
      return;
    case Type::kCollect: {
      const auto order = Order<control::CollectOrder>(frame);
      const Deadline deadline = Deadline::AfterNs(order.budget_ns);
      return Tell(control::EvidenceReport{order.request, Evidence(deadline, order.system)});
    }
    case Type::kJournal: {
      const auto order = Order<control::JournalOrder>(frame);
      Drain();
      return Tell(control::JournalReport{order.request, ReadJournal(order.most)});
    }
    case Type::kClockProbe: {
      const Ticks now = NowTicks();
      const auto order = Order<control::ClockProbe>(frame);
      control::ClockReport report{order.request, now, {}};
      if (order.read) report.reading = control::ReadClock(scale_.ns_per_tick);
      return Tell(report);
    }
    case Type::kReadGpus: {
      const auto order = Order<control::GpusOrder>(frame);
      control::GpusReport report{order.request, 0, {}};
      report.samples = ReadGpus(order.most, report.age_seconds);
      return Tell(report);
    }
    case Type::kSignal:
      return Signal(Order<control::SignalOrder>(frame).value);
    case Type::kFault: {
      const auto order = Order<control::FaultOrder>(frame);
      return Inject(order.fault, order.order);
    }
    case Type::kToPlugin:
      if (plugin_) plugin_->Obey(frame.payload);
      return;
    case Type::kEnd: {
      const auto order = Order<control::EndOrder>(frame);
      End();
      return Tell(control::EndedReport{order.request});
    }
    default:
      LOCKSTEP_CHECK(false, fmt::format("an agent got an order of type {}", frame.type));
  }
}

void RankAgent::OnPlugin() {
  if (!plugin_) return;
  for (std::string& report : plugin_->TakeReports())
    report_(FrameType::kFromPlugin, std::move(report));
}

const std::vector<TcpSocket>& RankAgent::LookAtSockets(bool search) {
  if (!child_) return sockets_;
  std::vector<TcpSocket> seen;
  if (has_worker()) {
    if (!looks_) looks_.emplace(child_->pid(), 1, kMostLooksPerSearch);
    seen = search ? looks_->Search() : looks_->Look();
  }
  if (plugin_) plugin_->Translate(seen);
  if (!seen.empty()) sockets_ = std::move(seen);
  return sockets_;
}

void RankAgent::OnChannel() {
  child_->channel().Flush();
  child_->channel().Fill();
  Pump();
}

void RankAgent::Pump() {
  while (std::optional<control::Frame> frame = child_->channel().Take()) OnFrame(*std::move(frame));
}

void RankAgent::Drain() {
  if (!outbox_) return;
  for (std::string bytes = outbox_->Drain(control::kMaxPayloadBytes); !bytes.empty();
       bytes = outbox_->Drain(control::kMaxPayloadBytes)) {
    report_(FrameType::kData, std::move(bytes));
  }
}

void RankAgent::OnFrame(control::Frame frame) {
  switch (static_cast<FrameType>(frame.type)) {
    case FrameType::kToWorker:
      Drain();
      report_(FrameType::kFromWorker, std::move(frame.payload));
      break;
    case FrameType::kMeetingPut:
    case FrameType::kMeetingGet:
      report_(static_cast<FrameType>(frame.type), std::move(frame.payload));
      break;
    default:
      // A worker is under test: it may send anything, and is not believed.
      child_->channel().Close();
  }
}

void RankAgent::OnChildChange() {
  if (!child_ || child_->gone()) return;
  // Bounded: a process cannot be stopped and continued faster than this for ever.
  for (int i = 0; i < 64; ++i) {
    const std::optional<ChildChange> change = child_->Poll();
    if (!change) return;
    OnChange(*change);
    if (child_->gone()) return;
  }
}

void RankAgent::OnChange(const ChildChange& change) {
  using Kind = ChildChange::Kind;
  if (change.kind == Kind::kExited || change.kind == Kind::kSignalled) {
    child_->channel().FillAll();
    Pump();
    child_->channel().Close();
    Drain();
    KeepLog();
  }
  if (child_->gone()) faults_.HealAll();
  const bool slice =
      change.kind == Kind::kContinued || (change.kind == Kind::kStopped && change.value == SIGSTOP);
  if (slice && faults_.throttles()) return;
  // What we did ourselves is no news.
  const bool news = !ending_ || change.kind == Kind::kExited ||
                    (change.kind == Kind::kSignalled && change.value != SIGKILL);
  worker_.Note(change);
  if (change.kind == Kind::kStopped) silence_.LookSoon();
  if (news) TellOfChange(change);
}

void RankAgent::TellOfChange(const ChildChange& change) {
  switch (change.kind) {
    case ChildChange::Kind::kExited:
      return Tell(control::ExitedReport{change.value});
    case ChildChange::Kind::kSignalled:
      return Tell(control::SignalledReport{change.value});
    case ChildChange::Kind::kStopped:
      return Tell(control::StoppedReport{change.value});
    case ChildChange::Kind::kContinued:
      return report_(FrameType::kContinued, {});
  }
}

int RankAgent::wake_ms() const {
  if (!has_worker()) return -1;
  const int look_ms = silence_.wake_ms();
  const int heal_ms = faults_.wake_ms();
  return heal_ms < 0 ? look_ms : std::min(look_ms, heal_ms);
}

void RankAgent::Watch() {
  faults_.HealDue([this](std::uint32_t fault) {
    Tell(control::FaultReport{fault, FaultNews::kHealed, ""});
  });
  if (!has_worker()) return;
  if (!awaits_order_ && silence_.TakeGlance() && silence_.IsNewlyQuiet(worker_, NewestEvent())) {
    report_(FrameType::kQuiet, {});
  }
  if (!silence_.TakeLook()) return;
  OnChildChange();
  if (!has_worker() || awaits_order_) return;
  if (silence_.IsNewlyOverdue(child_->pid(), worker_, NewestEvent())) {
    report_(FrameType::kOverdue, {});
  }
}

void RankAgent::Inject(std::uint32_t fault, const control::AgentFault& order) {
  const Result<std::string> done = faults_.Apply(fault, order);
  if (done.ok()) return Tell(control::FaultReport{fault, FaultNews::kApplied, *done});
  Tell(control::FaultReport{fault, FaultNews::kImpossible, done.status().message()});
}

void RankAgent::Signal(int signal) {
  // Who stops it wants it stopped.
  if (signal == SIGSTOP) faults_.EndThrottle();
  if (has_worker()) kill(child_->pid(), signal);
}

void RankAgent::End() {
  awaits_order_ = false;
  faults_.HealAll();
  if (!child_ || child_->gone()) return;
  OnChildChange();
  if (child_->gone()) return;
  ending_ = true;
  child_->Kill();
  if (!child_->AwaitExit(Deadline::AfterSeconds(5))) {
    PrintStderr("lockstep: worker {} of rank {} does not die; it is left behind\n", child_->pid(),
                context_.rank);
  }
  OnChildChange();
}

std::string RankAgent::LogPath() const { return fmt::format("/proc/self/fd/{}", log_.get()); }

void RankAgent::KeepLog() {
  const std::string path = control::ReadCard(segment_->card()).log_file;
  if (path.empty()) return;
  journal::WorkerLog log = ReadLogEnd(path);
  if (log.text.empty()) return;
  if (path == LogPath()) log.path.clear();
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
  if (worker_.death && !ending_) worker_.AppendDeath(journal);
  return journal;
}

// Peers of a process that is ending have lost it already: a moment later it is known how.
void RankAgent::AwaitEnd(Deadline deadline) {
  const Deadline until = deadline.Earlier(Deadline::AfterSeconds(kEndingSeconds));
  while (has_worker() && IsEnding(child_->pid()) && !until.Passed()) {
    SleepNs(1'000'000);
    OnChildChange();
  }
}

SilenceWatch::LastEvent RankAgent::NewestEvent() const {
  return journal_ ? SilenceWatch::Newest(*journal_) : std::nullopt;
}

verdict::RankEvidence RankAgent::Evidence(Deadline deadline, bool system) {
  OnChildChange();
  OnPlugin();  // a fault that met traffic has fired: told before the case is over
  AwaitEnd(deadline);
  verdict::RankEvidence evidence;
  evidence.rank = context_.rank;
  evidence.host = control::HostName();
  evidence.pid = child_ == nullptr ? 0 : child_->pid();
  evidence.state = worker_.process;
  evidence.exit_code = worker_.exit_code;
  evidence.signal = worker_.signal;
  evidence.journal = ReadJournal(segment_ ? segment_->journal_capacity() : 0);
  journal::Shorten(evidence.journal, control::kEvidenceEvents);
  const SilenceWatch::LastEvent last = NewestEvent();
  // Without a worker, or with one that has not been told to begin, a rank owes nothing.
  evidence.idle = !child_ || awaits_order_ || (last && last->kind == journal::EventKind::kIdle);
  if (has_worker()) silence_.LookForProgress(child_->pid(), worker_, last);
  if (journal_) {
    const SilenceWatch::Silence silence = silence_.Now(worker_, last);
    evidence.seconds_silent = silence.seconds;
    evidence.starved_s = silence.starved_s;
  }
  // A glance without a plugin shows no links: bytes of an earlier look would seem to stand still.
  if (system || plugin_) evidence.sockets = LookAtSockets(system);
  if (plugin_) evidence.echo_s = plugin_->EchoSeconds();
  if (segment_) {
    evidence.device = journal::ReadDeviceMarks(segment_->device_marks());
    evidence.gpu_bus = control::ReadCard(segment_->card()).gpu_bus;
  }
  if (worker_.process == ProcessState::kStopped) {
    evidence.system =
        fmt::format("stopped by signal {} (SIG{})", worker_.signal, sigabbrev_np(worker_.signal));
  } else if (system && has_worker()) {
    const SystemEvidence seen = LookAt(child_->pid(), deadline, last_call_);
    last_call_ = seen.call;
    evidence.system = seen.text;
    evidence.asleep = seen.asleep;
  }
  return evidence;
}

}  // namespace lockstep::agent
