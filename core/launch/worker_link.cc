#include "core/launch/worker_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <optional>
#include <utility>

#include "core/launch/channel.h"
#include "core/launch/child.h"
#include "core/launch/exchange.h"
#include "core/launch/outbox.h"
#include "core/launch/private_shm.h"
#include "core/launch/protocol.h"
#include "core/launch/segment.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostKeyBytes = 4096;
constexpr double kSendSeconds = 60;

Status AgentGone() {
  return EnvironmentError("the agent of this worker is gone; the launch is over");
}

class WorkerLinkImpl final : public WorkerLink, public Meeting {
 public:
  WorkerLinkImpl(const ChildRole& role, Channel channel, std::unique_ptr<Segment> segment)
      : role_(role),
        channel_(std::move(channel)),
        segment_(std::move(segment)),
        journal_(JournalWriter::Create(segment_->journal(), segment_->journal_capacity())),
        outbox_(segment_->outbox(), segment_->outbox_capacity()) {
    journal_.EnterPhase(Phase::kStart);
  }

  int rank() const override { return role_.rank; }
  int size() const override { return role_.size; }
  int local_rank() const override { return role_.local_rank; }
  int lifetime() const override { return role_.lifetime; }
  JournalWriter& journal() override { return journal_; }
  Outbox& outbox() override { return outbox_; }
  Meeting& meeting() override { return *this; }

  Result<Message> Receive(Deadline deadline) override { return Take(deadline, true); }
  Result<Message> Await(Deadline deadline) override { return Take(deadline, false); }
  Status Send(const Message& message) override;
  Status Put(const std::string& key, const std::string& value) override;
  Result<std::string> Get(const std::string& key, Deadline deadline) override;

 private:
  Result<Message> Take(Deadline deadline, bool idle);
  Status SendFrame(FrameType type, std::string_view payload);
  // Reads frames, sleeping until there is something new.
  Status Wait(Deadline deadline, std::string_view what);
  void Sort(Frame frame);

  const ChildRole role_;
  Channel channel_;
  std::unique_ptr<Segment> segment_;
  JournalWriter journal_;
  OutboxWriter outbox_;
  std::deque<Message> messages_;
  std::uint64_t request_ = 0;  // of the newest Get
  std::optional<std::string> answer_;
};

void WorkerLinkImpl::Sort(Frame frame) {
  if (frame.type == static_cast<std::uint32_t>(FrameType::kToWorker)) {
    messages_.push_back(DecodeMessage(frame.payload));
    return;
  }
  LOCKSTEP_CHECK(frame.type == static_cast<std::uint32_t>(FrameType::kMeetingValue),
                 fmt::format("a worker got a frame of type {}", frame.type));
  Decoder decoder(frame.payload);
  // The answer to a Get that gave up is nobody's.
  if (decoder.Get<std::uint64_t>() == request_) answer_ = decoder.Text();
}

Status WorkerLinkImpl::Wait(Deadline deadline, std::string_view what) {
  if (!channel_.open()) return AgentGone();
  if (deadline.Passed()) return DeadlineExceeded(fmt::format("{} did not come in time", what));
  pollfd item{channel_.fd(), channel_.poll_events(), 0};
  if (poll(&item, 1, deadline.RemainingMs()) > 0) {
    channel_.Flush();
    channel_.Fill();
    while (std::optional<Frame> frame = channel_.Take()) Sort(*std::move(frame));
  }
  return OkStatus();
}

Result<Message> WorkerLinkImpl::Take(Deadline deadline, bool idle) {
  if (messages_.empty()) {
    channel_.Fill();
    while (std::optional<Frame> frame = channel_.Take()) Sort(*std::move(frame));
  }
  if (messages_.empty() && idle) journal_.Idle();
  while (messages_.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(Wait(deadline, "a message of the conductor"));
  }
  Message message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

Status WorkerLinkImpl::SendFrame(FrameType type, std::string_view payload) {
  channel_.Send(static_cast<std::uint32_t>(type), payload);
  if (channel_.FlushUntil(Deadline::AfterSeconds(kSendSeconds))) return OkStatus();
  if (!channel_.open()) return AgentGone();
  return DeadlineExceeded(fmt::format("the agent took no message for {} s", kSendSeconds));
}

Status WorkerLinkImpl::Send(const Message& message) {
  LOCKSTEP_CHECK(message.type < kReservedMessageType, "a reserved message type");
  LOCKSTEP_CHECK(message.payload.size() <= kMaxPayloadBytes, "the message is too large");
  return SendFrame(FrameType::kToWorker, EncodeMessage(message));
}

Status WorkerLinkImpl::Put(const std::string& key, const std::string& value) {
  LOCKSTEP_CHECK(key.size() <= kMostKeyBytes && value.size() <= kMaxPayloadBytes - kMostKeyBytes,
                 "the key or value is too large for a meeting");
  return SendFrame(FrameType::kMeetingPut, Encoder().Text(key).Text(value).Take());
}

Result<std::string> WorkerLinkImpl::Get(const std::string& key, Deadline deadline) {
  LOCKSTEP_CHECK(key.size() <= kMostKeyBytes, "the key is too large for a meeting");
  ++request_;
  answer_.reset();
  LOCKSTEP_RETURN_IF_ERROR(
      SendFrame(FrameType::kMeetingGet, Encoder().Put(request_).Text(key).Take()));
  while (!answer_) {
    LOCKSTEP_RETURN_IF_ERROR(Wait(deadline, fmt::format("the value of '{}'", key)));
  }
  return *std::exchange(answer_, std::nullopt);
}

// Source: prctl(2). The signal comes when the agent dies from now on; if it died before, our parent
// is another process already.
Status DieWithAgent(int agent_pid) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != agent_pid) {
    return EnvironmentError(
        fmt::format("{} names an agent that is not the parent of this process; "
                    "it is set by agents for their workers only",
                    kRoleVariable));
  }
  return OkStatus();
}

Result<ChildRole> OwnRole() {
  const char* const text = std::getenv(kRoleVariable);
  const std::optional<ChildRole> role = DecodeRole(text ? text : "");
  if (!role) {
    return InvalidInput(
        fmt::format("{}='{}' in the environment is not understood; it is set by "
                    "agents for their workers only: unset it",
                    kRoleVariable, text ? text : ""));
  }
  LOCKSTEP_RETURN_IF_ERROR(DieWithAgent(role->agent_pid));
  for (const int fd : {role->channel_fd, role->segment_fd}) {
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return AgentGone();
  }
  return *role;
}

}  // namespace

bool WorkerLink::IsWorker() { return std::getenv(kRoleVariable) != nullptr; }

Result<std::unique_ptr<WorkerLink>> WorkerLink::Open() {
  EnterPrivateShm();
  LOCKSTEP_ASSIGN_OR_RETURN(const ChildRole role, OwnRole());
  // Started through /proc/self/exe it would be called "exe".
  prctl(PR_SET_NAME, program_invocation_short_name);
  Channel channel(Fd(role.channel_fd), kMostFrameBytes);
  if (role.kind == ChildRole::Kind::kExchange) {
    const Status status = ServeExchange(channel, /*keep_mpi=*/false);
    std::exit(static_cast<int>(status.ok() ? ExitCode::kPass : ExitCodeOf(status.code())));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Segment> segment, Segment::Map(Fd(role.segment_fd)));
  if (role.kind == ChildRole::Kind::kExchangingWorker) {
    LOCKSTEP_RETURN_IF_ERROR(ServeExchange(channel, /*keep_mpi=*/true));
  }
  return std::unique_ptr<WorkerLink>(
      new WorkerLinkImpl(role, std::move(channel), std::move(segment)));
}

}  // namespace lockstep
