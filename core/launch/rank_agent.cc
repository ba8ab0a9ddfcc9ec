#include "core/launch/rank_agent.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/journal/journal.h"
#include "core/launch/clock_reading.h"
#include "core/launch/evidence.h"
#include "core/launch/open_files.h"
#include "core/launch/sockets.h"
#include "core/launch/worker_log.h"

namespace lockstep::launch {
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

RankAgent::RankAgent(const LaunchContext& context, const AgentOptions& options, Report report)
    : context_(context), options_(options), report_(std::move(report)), scale_(CalibrateTicks()) {
  RaiseOpenFiles();
  if (context_.local_rank == 0) gpus_ = GpuWatch::Start({options_.gpu_sample_seconds});
  if (options_.companion) companion_ = options_.companion(context_.rank);
}

Status RankAgent::Spawn(ChildRole::Kind kind, int lifetime, const WorkerSetup& setup) {
  // Until there is a new one, the rank has no worker: which is no worker that has left.
  child_.reset();
  state_ = verdict::ProcessState::kRunning;
  LOCKSTEP_ASSIGN_OR_RETURN(
      segment_, Segment::Create(options_.journal_capacity, options_.outbox_capacity_bytes));
  outbox_.emplace(segment_->outbox(), segment_->outbox_capacity());
  journal_.emplace(segment_->journal(), segment_->journal_capacity());
  started_ = NowTicks();
  life_ = LifeSigns();
  overdue_since_.reset();
  quiet_since_.reset();
  next_look_ = next_glance_ = Deadline::AfterNs(0);
  death_.reset();
  ending_ = false;
  exit_code_ = signal_ = 0;
  lifetime_ = lifetime;
  ChildRole role;
  role.kind = kind;
  role.rank = context_.rank;
  role.size = context_.size;
  role.local_rank = context_.local_rank;
  role.lifetime = lifetime;
  sockets_.clear();
  std::vector<std::string> environment;
  if (companion_) environment = companion_->BeginLifetime(lifetime);
  LOCKSTEP_RETURN_IF_ERROR(faults_.Prepare(setup, environment));
  LOCKSTEP_ASSIGN_OR_RETURN(child_, Child::Spawn(role, segment_->fd(), environment));
  faults_.Begin(child_->pid());
  if (companion_) companion_->OnStarted(child_->pid());
  return OkStatus();
}

Result<Child*> RankAgent::StartExchangingWorker() {
  LOCKSTEP_RETURN_IF_ERROR(Spawn(ChildRole::Kind::kExchangingWorker, 0, {}));
  awaits_order_ = true;
  return child_.get();
}

Status RankAgent::Start(int lifetime, const WorkerSetup& setup) {
  if (awaits_order_) {
    awaits_order_ = false;
    if (!setup.empty()) {
      return Unsupported(
          "a fault needs a worker that is started for it, but across hosts the worker of "
          "--backend=mpi runs before; run the scenario on one host");
    }
    started_ = NowTicks();
    child_->channel().Send(static_cast<std::uint32_t>(FrameType::kProceed), {});
    return OkStatus();
  }
  End();
  return Spawn(ChildRole::Kind::kWorker, lifetime, setup);
}

int RankAgent::channel_fd() const {
  return child_ && child_->channel().open() ? child_->channel().fd() : -1;
}

short RankAgent::poll_events() const { return child_ ? child_->channel().poll_events() : short{0}; }

void RankAgent::Obey(const Frame& order) {
  Decoder decoder(order.payload);
  switch (static_cast<FrameType>(order.type)) {
    case FrameType::kStartWorker: {
      Encoder answer;
      const auto lifetime = decoder.Get<std::int32_t>();
      WorkerSetup setup;
      LOCKSTEP_CHECK(Get(decoder, setup), "an order to start a worker");
      Put(answer, Start(lifetime, setup));
      report_(FrameType::kStarted, answer.Take());
      break;
    }
    case FrameType::kToWorker:
    case FrameType::kMeetingValue:
      if (child_) child_->channel().Send(order.type, order.payload);
      break;
    case FrameType::kCollect: {
      Encoder answer;
      answer.Put(decoder.Get<std::uint64_t>());
      const Deadline deadline = Deadline::AfterNs(decoder.Get<std::int64_t>());
      Put(answer, Evidence(deadline, decoder.Get<std::uint8_t>() != 0));
      report_(FrameType::kEvidence, answer.Take());
      break;
    }
    case FrameType::kJournal: {
      Encoder answer;
      answer.Put(decoder.Get<std::uint64_t>());
      Drain();
      Put(answer, ReadJournal(decoder.Get<std::uint64_t>()));
      report_(FrameType::kJournalRead, answer.Take());
      break;
    }
    case FrameType::kClockProbe: {
      Encoder answer;
      answer.Put(decoder.Get<std::uint64_t>()).Put(NowTicks());
      if (decoder.Get<std::uint8_t>() != 0) Put(answer, ReadClock(scale_.ns_per_tick));
      report_(FrameType::kClockTold, answer.Take());
      break;
    }
    case FrameType::kReadGpus: {
      const auto request = decoder.Get<std::uint64_t>();
      double age_seconds = 0;
      const journal::GpuSamples samples = ReadGpus(decoder.Get<std::uint64_t>(), age_seconds);
      Encoder answer;
      Put(answer.Put(request).Put(age_seconds), samples);
      report_(FrameType::kGpusRead, answer.Take());
      break;
    }
    case FrameType::kSignal:
      Signal(decoder.Get<std::int32_t>());
      break;
    case FrameType::kFault: {
      const auto fault = decoder.Get<std::uint32_t>();
      AgentFault what;
      LOCKSTEP_CHECK(Get(decoder, what), "an order to inject a fault");
      Inject(fault, what);
      break;
    }
    case FrameType::kToCompanion:
      if (companion_) companion_->Obey(order.payload);
      break;
    case FrameType::kEnd:
      End();
      report_(FrameType::kEnded, Encoder().Put(decoder.Get<std::uint64_t>()).Take());
      break;
    default:
      LOCKSTEP_CHECK(false, fmt::format("an agent got an order of type {}", order.type));
  }
}

void RankAgent::OnCompanion() {
  for (std::string& report : companion_->TakeReports()) {
    report_(FrameType::kFromCompanion, std::move(report));
  }
}

void RankAgent::LookAtSockets() {
  if (!child_) return;
  std::vector<verdict::TcpSocket> seen;
  if (has_worker()) seen = SocketsOf(child_->pid());
  if (companion_) companion_->Translate(seen);
  if (!seen.empty()) sockets_ = std::move(seen);
}

void RankAgent::OnChannel() {
  child_->channel().Flush();
  child_->channel().Fill();
  Pump();
}

void RankAgent::Pump() {
  while (std::optional<Frame> frame = child_->channel().Take()) OnFrame(*std::move(frame));
}

void RankAgent::Drain() {
  if (!outbox_) return;
  for (std::string bytes = outbox_->Drain(kMaxPayloadBytes); !bytes.empty();
       bytes = outbox_->Drain(kMaxPayloadBytes)) {
    report_(FrameType::kData, std::move(bytes));
  }
}

void RankAgent::OnFrame(Frame frame) {
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
  const std::string value = Encoder().Put(std::int32_t{change.value}).Take();
  switch (change.kind) {
    case Kind::kExited:
      state_ = verdict::ProcessState::kExited;
      exit_code_ = change.value;
      death_ = W_EXITCODE(change.value, 0);
      if (news) report_(FrameType::kExited, value);
      break;
    case Kind::kSignalled:
      state_ = verdict::ProcessState::kSignalled;
      signal_ = change.value;
      death_ = W_EXITCODE(0, change.value);
      if (news) report_(FrameType::kSignalled, value);
      break;
    case Kind::kStopped:
      state_ = verdict::ProcessState::kStopped;
      signal_ = change.value;
      stopped_ = NowTicks();
      next_look_ = Deadline::AfterNs(0);
      if (news) report_(FrameType::kStopped, value);
      break;
    case Kind::kContinued:
      state_ = verdict::ProcessState::kRunning;
      signal_ = 0;
      if (news) report_(FrameType::kContinued, {});
      break;
  }
}

double RankAgent::SecondsSilent(const std::optional<journal::JournalEvent>& last) const {
  Ticks since = last ? std::max(last->ticks, started_) : started_;
  if (last && last->kind == journal::EventKind::kIdle && state_ == verdict::ProcessState::kStopped)
    since = stopped_;
  const Ticks now = death_ ? died_ : NowTicks();
  if (MayWaitForPeers(last)) return scale_.DurationNs(since, now) * 1e-9;
  if (life_.grew() > since) return scale_.DurationNs(life_.grew(), now) * 1e-9;
  return std::max(scale_.DurationNs(since, now) * 1e-9 - life_.SecondsStarved(since), 0.0);
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
  faults_.HealDue([this](std::uint32_t fault) { TellOfFault(fault, FaultNews::kHealed, ""); });
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
  report_(FrameType::kQuiet, {});
}

void RankAgent::TellOfFault(std::uint32_t fault, FaultNews news, const std::string& text) {
  report_(FrameType::kFaultDone,
          Encoder().Put(fault).Put(static_cast<std::uint8_t>(news)).Text(text).Take());
}

void RankAgent::Inject(std::uint32_t fault, const AgentFault& order) {
  const Result<std::string> done = faults_.Apply(fault, order);
  if (done.ok()) return TellOfFault(fault, FaultNews::kApplied, *done);
  TellOfFault(fault, FaultNews::kImpossible, done.status().message());
}

void RankAgent::Signal(int signal) {
  // Who stops it wants it stopped.
  if (signal == SIGSTOP) faults_.EndThrottle();
  if (has_worker()) kill(child_->pid(), signal);
}

// Memory comes page by page, and a processor late, without an event: a rank that is to compute is
// not silent for want of these. In a collective it would wait for peers.
void RankAgent::LookForLife(const std::optional<journal::JournalEvent>& last) {
  if (!has_worker() || MayWaitForPeers(last)) return;
  life_.Look(child_->pid(), last ? std::max(last->ticks, started_) : started_);
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
  LookForLife(last);
  const double silent = SecondsSilent(last);
  if (silent < deadline) {
    overdue_since_.reset();
    return LookAgainIn(std::min(deadline - silent, deadline / kLooksPerDeadline));
  }
  if (overdue_since_ == silence) return;
  overdue_since_ = silence;
  report_(FrameType::kOverdue, {});
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

}  // namespace lockstep::launch
