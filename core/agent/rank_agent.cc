#include "core/agent/rank_agent.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/agent/evidence.h"
#include "core/agent/sockets.h"
#include "core/agent/worker_log.h"
#include "core/control/clock_reading.h"
#include "core/control/open_files.h"
#include "core/journal/journal.h"

namespace lockstep::agent {
namespace {

constexpr int kLooksPerDeadline = 4;

// It may be in a call that ends when others come.
bool MayWaitForPeers(const std::optional<journal::JournalEvent>& last) {
  if (!last) return false;
  switch (last->kind) {
    case journal::EventKind::kEnqueue:
    case journal::EventKind::kStart:
    case journal::EventKind::kSplit:
      return true;
    default:
      return last->phase == journal::Phase::kConnect || last->phase == journal::Phase::kFinalize;
  }
}

}  // namespace

RankAgent::RankAgent(const control::LaunchContext& context, const AgentOptions& options,
                     Report report)
    : context_(context), options_(options), report_(std::move(report)), scale_(CalibrateTicks()) {
  control::RaiseOpenFiles();
  if (context_.local_rank == 0) gpus_ = GpuWatch::Start({options_.gpu_sample_seconds});
  if (options_.plugin) plugin_ = options_.plugin(context_.rank);
}

Status RankAgent::Spawn(control::ChildRole::Kind kind, int lifetime,
                        const control::WorkerSetup& setup) {
  // Until there is a new one, the rank has no worker: which is no worker that has left.
  child_.reset();
  state_ = verdict::ProcessState::kRunning;
  LOCKSTEP_ASSIGN_OR_RETURN(segment_, control::Segment::Create(options_.journal_capacity,
                                                               options_.outbox_capacity_bytes));
  outbox_.emplace(segment_->outbox(), segment_->outbox_capacity());
  journal_.emplace(segment_->journal(), segment_->journal_capacity());
  started_ = NowTicks();
  progress_ = ProgressProbe();
  overdue_since_.reset();
  quiet_since_.reset();
  next_look_ = next_glance_ = Deadline::AfterNs(0);
  death_.reset();
  ending_ = false;
  exit_code_ = signal_ = 0;
  lifetime_ = lifetime;
  control::ChildRole role;
  role.kind = kind;
  role.rank = context_.rank;
  role.size = context_.size;
  role.local_rank = context_.local_rank;
  role.lifetime = lifetime;
  sockets_.clear();
  std::vector<std::string> environment;
  if (plugin_) environment = plugin_->BeginLifetime(lifetime);
  LOCKSTEP_RETURN_IF_ERROR(faults_.Prepare(setup, environment));
  LOCKSTEP_ASSIGN_OR_RETURN(child_, Child::Spawn(role, segment_->fd(), environment));
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
    started_ = NowTicks();
    child_->channel().Send(control::FrameType::kProceed);
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
  using Type = control::FrameType;
  switch (static_cast<Type>(frame.type)) {
    case Type::kStartWorker: {
      const auto order = Order<control::StartOrder>(frame);
      return Tell(
          control::StartedReport{control::StatusRecord(Start(order.lifetime, order.setup))});
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
  for (std::string& report : plugin_->TakeReports()) {
    report_(control::FrameType::kFromPlugin, std::move(report));
  }
}

void RankAgent::LookAtSockets() {
  if (!child_) return;
  std::vector<verdict::TcpSocket> seen;
  if (has_worker()) seen = SocketsOf(child_->pid());
  if (plugin_) plugin_->Translate(seen);
  if (!seen.empty()) sockets_ = std::move(seen);
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
    report_(control::FrameType::kData, std::move(bytes));
  }
}

void RankAgent::OnFrame(control::Frame frame) {
  switch (static_cast<control::FrameType>(frame.type)) {
    case control::FrameType::kToWorker:
      Drain();
      report_(control::FrameType::kFromWorker, std::move(frame.payload));
      break;
    case control::FrameType::kMeetingPut:
    case control::FrameType::kMeetingGet:
      report_(static_cast<control::FrameType>(frame.type), std::move(frame.payload));
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
    RemoveQuietLogs("", child_->pid());
    died_ = NowTicks();
  }
  if (child_->gone()) faults_.HealAll();
  const bool slice =
      change.kind == Kind::kContinued || (change.kind == Kind::kStopped && change.value == SIGSTOP);
  if (slice && faults_.throttles()) return;
  // What we did ourselves is no news.
  const bool news = !ending_ || change.kind == Kind::kExited ||
                    (change.kind == Kind::kSignalled && change.value != SIGKILL);
  switch (change.kind) {
    case Kind::kExited:
      state_ = verdict::ProcessState::kExited;
      exit_code_ = change.value;
      death_ = W_EXITCODE(change.value, 0);
      if (news) Tell(control::ExitedReport{change.value});
      break;
    case Kind::kSignalled:
      state_ = verdict::ProcessState::kSignalled;
      signal_ = change.value;
      death_ = W_EXITCODE(0, change.value);
      if (news) Tell(control::SignalledReport{change.value});
      break;
    case Kind::kStopped:
      state_ = verdict::ProcessState::kStopped;
      signal_ = change.value;
      stopped_ = NowTicks();
      next_look_ = Deadline::AfterNs(0);
      if (news) Tell(control::StoppedReport{change.value});
      break;
    case Kind::kContinued:
      state_ = verdict::ProcessState::kRunning;
      signal_ = 0;
      if (news) report_(control::FrameType::kContinued, {});
      break;
  }
}

double RankAgent::SecondsSilent(const std::optional<journal::JournalEvent>& last) const {
  Ticks since = last ? std::max(last->ticks, started_) : started_;
  if (last && last->kind == journal::EventKind::kIdle && state_ == verdict::ProcessState::kStopped)
    since = stopped_;
  const Ticks now = death_ ? died_ : NowTicks();
  if (MayWaitForPeers(last)) return scale_.DurationNs(since, now) * 1e-9;
  if (progress_.newest_page_fault() > since)
    return scale_.DurationNs(progress_.newest_page_fault(), now) * 1e-9;
  return std::max(scale_.DurationNs(since, now) * 1e-9 - progress_.RunDelaySeconds(since), 0.0);
}

void RankAgent::LookAgainIn(double seconds) {
  next_look_ = Deadline::AfterSeconds(std::max(seconds, 0.0) + 0.001);
}

int RankAgent::wake_ms() const {
  if (!has_worker()) return -1;
  const bool glances = options_.quiet_seconds > 0;
  const int look_ms = (glances ? next_look_.Earlier(next_glance_) : next_look_).RemainingMs();
  const int heal_ms = faults_.wake_ms();
  return heal_ms < 0 ? look_ms : std::min(look_ms, heal_ms);
}

void RankAgent::Watch() {
  faults_.HealDue(
      [this](std::uint32_t fault) { TellOfFault(fault, control::FaultNews::kHealed, ""); });
  if (options_.quiet_seconds > 0) WatchForQuiet();
  WatchForOverdue();
}

void RankAgent::WatchForQuiet() {
  if (!has_worker() || awaits_order_ || !next_glance_.Passed()) return;
  const double quiet = options_.quiet_seconds;
  next_glance_ = Deadline::AfterSeconds(quiet / 2);
  const std::optional<journal::JournalEvent> last = journal_->Last();
  if (!last || last->kind == journal::EventKind::kIdle || last->kind == journal::EventKind::kExit)
    return;
  if (quiet_since_ == last->ticks || SecondsSilent(last) < quiet) return;
  quiet_since_ = last->ticks;
  report_(control::FrameType::kQuiet, {});
}

void RankAgent::TellOfFault(std::uint32_t fault, control::FaultNews news, const std::string& text) {
  Tell(control::FaultReport{fault, news, text});
}

void RankAgent::Inject(std::uint32_t fault, const control::AgentFault& order) {
  const Result<std::string> done = faults_.Apply(fault, order);
  if (done.ok()) return TellOfFault(fault, control::FaultNews::kApplied, *done);
  TellOfFault(fault, control::FaultNews::kImpossible, done.status().message());
}

void RankAgent::Signal(int signal) {
  // Who stops it wants it stopped.
  if (signal == SIGSTOP) faults_.EndThrottle();
  if (has_worker()) kill(child_->pid(), signal);
}

// Memory comes page by page, and a processor late, without an event: a rank that is to compute is
// not silent for want of these. In a collective it would wait for peers.
void RankAgent::LookForProgress(const std::optional<journal::JournalEvent>& last) {
  if (!has_worker() || MayWaitForPeers(last)) return;
  progress_.Look(child_->pid(), last ? std::max(last->ticks, started_) : started_);
}

void RankAgent::WatchForOverdue() {
  if (!has_worker() || !next_look_.Passed()) return;
  const double deadline = options_.silence_deadline_seconds;
  // Some looks in a silence, so that what is said of it holds for most of it.
  LookAgainIn(deadline / kLooksPerDeadline);
  OnChildChange();
  if (!has_worker() || awaits_order_) return;
  const std::optional<journal::JournalEvent> last = journal_->Last();
  const bool excused =
      last &&
      (last->kind == journal::EventKind::kExit ||
       (last->kind == journal::EventKind::kIdle && state_ != verdict::ProcessState::kStopped));
  if (excused) {
    overdue_since_.reset();
    return;
  }
  // A silence is known by the event that began it.
  const Ticks silence = last ? last->ticks : started_;
  LookForProgress(last);
  const double silent = SecondsSilent(last);
  if (silent < deadline) {
    overdue_since_.reset();
    return LookAgainIn(std::min(deadline - silent, deadline / kLooksPerDeadline));
  }
  if (overdue_since_ == silence) return;
  overdue_since_ = silence;
  report_(control::FrameType::kOverdue, {});
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
    fmt::print(stderr, "lockstep: worker {} of rank {} does not die; it is left behind\n",
               child_->pid(), context_.rank);
  }
  OnChildChange();
}

}  // namespace lockstep::agent
