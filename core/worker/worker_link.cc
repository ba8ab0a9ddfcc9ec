// A worker reads its channel when it waits for something; once a listener runs, that thread reads,
// and who waits is woken. Messages, answers of the meeting and their order are kept under one lock.
#include "core/worker/worker_link.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/control/context.h"
#include "core/control/frames.h"
#include "core/control/machine.h"
#include "core/control/open_files.h"
#include "core/control/private_shm.h"
#include "core/control/rendezvous/exchange.h"

namespace lockstep::worker {
namespace {

constexpr std::size_t kMostKeyBytes = 4096;
constexpr double kSendSeconds = 60;

Status AgentGone() {
  return EnvironmentError("the agent of this worker is gone; the launch is over");
}

// Source: prctl(2). The signal comes when the agent dies from now on; if it died before, our parent
// is another process already.
Status DieWithAgent(int agent_pid) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != agent_pid) {
    return EnvironmentError(
        "{} names an agent that is not the parent of this process; it is set by agents for their "
        "workers only",
        control::kRoleVariable);
  }
  // Where only ancestors may trace (Yama): the agent's helper reads our stack. Else it is refused.
  prctl(PR_SET_PTRACER, agent_pid);
  return OkStatus();
}

Result<control::ChildRole> OwnRole() {
  const char* const text = std::getenv(control::kRoleVariable);
  const std::optional<control::ChildRole> role = control::DecodeRole(text ? text : "");
  if (!role) {
    return InvalidInput(
        "{}='{}' in the environment is not understood; it is set by agents for their workers only: "
        "unset it",
        control::kRoleVariable, text ? text : "");
  }
  LOCKSTEP_RETURN_IF_ERROR(DieWithAgent(role->agent_pid));
  for (const int fd : {role->channel_fd, role->segment_fd}) {
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return AgentGone();
  }
  control::LimitOpenFiles(role->open_files);
  return *role;
}

}  // namespace

WorkerLink::WorkerLink(const control::ChildRole& role, control::Channel channel,
                       std::unique_ptr<control::Segment> segment)
    : role_(role),
      channel_(std::move(channel)),
      segment_(std::move(segment)),
      journal_(journal::JournalWriter::Create(segment_->journal(), segment_->journal_capacity())),
      outbox_(segment_->outbox(), segment_->outbox_capacity()) {
  journal_.EnterPhase(journal::Phase::kStart);
}

WorkerLink::~WorkerLink() {
  if (!listener_.joinable()) return;
  eventfd_write(wake_.get(), 1);
  listener_.join();
}

void WorkerLink::Sort(control::Frame frame) {
  if (frame.is(control::FrameType::kToWorker)) {
    (take_ ? fresh_ : messages_)
        .push_back(control::Decode<Message>(frame.payload).value_or(Message{}));
    return;
  }
  LOCKSTEP_CHECK(frame.is(control::FrameType::kMeetingValue),
                 fmt::format("a worker got a frame of type {}", frame.type));
  auto answer = control::Decode<control::MeetingValue>(frame.payload);
  // The answer to a Get that gave up is nobody's.
  if (answer && answer->request == request_) answer_ = std::move(answer->value);
}

void WorkerLink::ReadFrames() {
  channel_.Fill();
  while (std::optional<control::Frame> frame = channel_.Take()) Sort(*std::move(frame));
}

void WorkerLink::Listen(std::function<bool(const Message&)> take) {
  LOCKSTEP_CHECK(!take_, "a worker listens once");
  wake_ = Fd(eventfd(0, EFD_CLOEXEC));
  LOCKSTEP_CHECK(wake_.valid(), "an eventfd for the listener");
  take_ = std::move(take);
  fresh_.swap(messages_);  // what came before is heard, too
  listener_ = std::thread([this] { RunListener(); });
}

void WorkerLink::RunListener() {
  // The descriptor stays the same until it is closed, and only this thread closes it.
  pollfd items[] = {{channel_.fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  while (items[1].revents == 0) {
    Lock lock(mutex_);
    ReadFrames();
    while (!fresh_.empty()) {
      Message message = std::move(fresh_.front());
      fresh_.pop_front();
      lock.unlock();
      const bool taken = take_(message);
      lock.lock();
      if (!taken) messages_.push_back(std::move(message));
    }
    news_.notify_all();
    if (!channel_.open()) return;
    lock.unlock();
    poll(items, 2, -1);
  }
}

void WorkerLink::CloseMeeting(bool closed) {
  Lock lock(mutex_);
  meeting_closed_ = closed;
  news_.notify_all();
}

Status WorkerLink::Wait(Lock& lock, Deadline deadline, std::string_view what) {
  if (!channel_.open()) return AgentGone();
  if (deadline.Passed()) return DeadlineExceeded("{} did not come in time", what);
  if (take_) {
    news_.wait_for(lock,
                   std::chrono::nanoseconds(std::max<std::int64_t>(deadline.RemainingNs(), 0)));
    return OkStatus();
  }
  pollfd item{channel_.fd(), channel_.poll_events(), 0};
  if (poll(&item, 1, deadline.RemainingMs()) > 0) {
    channel_.Flush();
    ReadFrames();
  }
  return OkStatus();
}

Result<Message> WorkerLink::Take(std::optional<std::uint32_t> type, Deadline deadline, bool idle) {
  Lock lock(mutex_);
  const auto find = [&] {
    return std::ranges::find_if(messages_,
                                [&](const Message& one) { return !type || one.type == *type; });
  };
  if (find() == messages_.end() && !take_) ReadFrames();
  if (find() == messages_.end() && idle) journal_.Idle();
  while (find() == messages_.end()) {
    LOCKSTEP_RETURN_IF_ERROR(Wait(lock, deadline, "a message of the coordinator"));
  }
  const auto found = find();
  Message message = std::move(*found);
  messages_.erase(found);
  return message;
}

Status WorkerLink::SendFrame(control::FrameType type, std::string_view payload) {
  channel_.Send(type, payload);
  if (channel_.FlushUntil(Deadline::AfterSeconds(kSendSeconds))) return OkStatus();
  if (!channel_.open()) return AgentGone();
  return DeadlineExceeded("the agent took no message for {} s", kSendSeconds);
}

Status WorkerLink::Send(const Message& message) {
  LOCKSTEP_CHECK(message.type < control::kReservedMessageType, "a reserved message type");
  LOCKSTEP_CHECK(message.payload.size() <= control::kMaxPayloadBytes, "the message is too large");
  Lock lock(mutex_);
  return SendFrame(control::FrameType::kToWorker, control::Encode(message));
}

Status WorkerLink::Put(const std::string& key, const std::string& value) {
  LOCKSTEP_CHECK(
      key.size() <= kMostKeyBytes && value.size() <= control::kMaxPayloadBytes - kMostKeyBytes,
      "the key or value is too large for a meeting");
  Lock lock(mutex_);
  return SendFrame(control::FrameType::kMeetingPut,
                   control::Encode(control::MeetingPut{key, value}));
}

Result<std::string> WorkerLink::Get(const std::string& key, Deadline deadline) {
  LOCKSTEP_CHECK(key.size() <= kMostKeyBytes, "the key is too large for a meeting");
  Lock lock(mutex_);
  ++request_;
  answer_.reset();
  LOCKSTEP_RETURN_IF_ERROR(SendFrame(control::FrameType::kMeetingGet,
                                     control::Encode(control::MeetingGet{request_, key})));
  while (!answer_) {
    if (meeting_closed_) return SystemFailed("connecting was aborted");
    LOCKSTEP_RETURN_IF_ERROR(Wait(lock, deadline, fmt::format("the value of '{}'", key)));
  }
  return *std::exchange(answer_, std::nullopt);
}

Result<std::string> WorkerLink::ListenAddress() {
  LOCKSTEP_ASSIGN_OR_RETURN(const control::LaunchContext context, control::DetectLaunch());
  return control::ListenAddress(context);
}

bool WorkerLink::IsWorker() { return std::getenv(control::kRoleVariable) != nullptr; }

Result<std::unique_ptr<WorkerLink>> WorkerLink::Open() {
  control::EnterPrivateShm();
  LOCKSTEP_ASSIGN_OR_RETURN(const control::ChildRole role, OwnRole());
  // Started through /proc/self/exe it would be called "exe".
  prctl(PR_SET_NAME, program_invocation_short_name);
  control::Channel channel(Fd(role.channel_fd), control::kMostFrameBytes);
  if (role.kind == control::ChildRole::Kind::kExchange) {
    const Status status = control::rendezvous::ServeExchange(channel, /*keep_mpi=*/false);
    std::exit(static_cast<int>(status.ok() ? ExitCode::kPass : ExitCodeOf(status.code())));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<control::Segment> segment,
                            control::Segment::Map(Fd(role.segment_fd)));
  if (role.kind == control::ChildRole::Kind::kExchangingWorker) {
    LOCKSTEP_RETURN_IF_ERROR(control::rendezvous::ServeExchange(channel, /*keep_mpi=*/true));
  }
  return std::unique_ptr<WorkerLink>(new WorkerLink(role, std::move(channel), std::move(segment)));
}

std::string WorkerFacts(std::string_view backend, const std::string& version,
                        std::string_view device, const std::string& remark,
                        const std::string& device_marks) {
  nlohmann::ordered_json facts = {{"backend", std::string(backend)},
                                  {"backend_version", version},
                                  {"device", std::string(device)}};
  if (!remark.empty()) facts["backend_remark"] = remark;
  if (!device_marks.empty()) facts["device_marks"] = device_marks;
  return facts.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace lockstep::worker
