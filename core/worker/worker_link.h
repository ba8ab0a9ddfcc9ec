// The worker's end of everything it shares with its agent.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"
#include "core/control/channel.h"
#include "core/control/facts.h"
#include "core/control/outbox.h"
#include "core/control/segment.h"
#include "core/journal/journal.h"
#include "core/worker/connecting_meeting.h"

namespace lockstep::worker {

using control::Message;

class WorkerLink : private comm::Meeting {
 public:
  // Whether this process was started as a worker; asked first in main.
  static bool IsWorker();
  // Maps the shared memory, arranges to die with the agent, journals Phase::kStart. Across hosts
  // the process may only be meant to exchange the agents' addresses over MPI: then it exits here;
  // and if the workers own MPI, MPI is initialized (MPI_THREAD_SINGLE) when this returns.
  static Result<std::unique_ptr<WorkerLink>> Open();
  // Where a library should listen for its peers: empty (loopback) when all ranks are on one host,
  // else an address of the network between the hosts (core/control/machine.h).
  static Result<std::string> ListenAddress();

  ~WorkerLink() override;
  int rank() const { return role_.rank; }
  int size() const { return role_.size; }
  int local_rank() const { return role_.local_rank; }
  int lifetime() const { return role_.lifetime; }  // 0, 1, …: which worker of this rank
  journal::JournalWriter& journal() { return journal_; }
  control::Outbox& outbox() { return outbox_; }
  // What the agent should know of this process even when it is wedged or dead.
  void Introduce(const control::WorkerCard& card) { control::WriteCard(segment_->card(), card); }
  // For RecordedCommunicator::MarkOn.
  std::span<std::byte> device_marks() { return segment_->device_marks(); }
  // Where the ranks of this lifetime exchange addresses, through the agents.
  comm::Meeting& meeting() { return meeting_; }
  // Journals Phase::kConnect, and again whenever the meeting shows that this rank gets on.
  void BeginConnecting() { meeting_.Begin(journal_); }
  void EndConnecting() { meeting_.End(); }

  // The next message of the coordinator. Sleeps (no spinning), after it journaled kIdle. What the
  // worker does with the message it must journal itself, or its silence looks idle.
  // kDeadlineExceeded, or kEnvironment when the agent is gone.
  Result<Message> Receive(Deadline deadline) { return Take({}, deadline, true); }
  // The next one of that type. Others stay for those who ask for them: on several threads, too.
  Result<Message> Receive(std::uint32_t type, Deadline deadline) {
    return Take(type, deadline, true);
  }
  // The same in the middle of work, without kIdle: silence goes on counting.
  Result<Message> Await(std::uint32_t type, Deadline deadline) {
    return Take(type, deadline, false);
  }
  Status Send(const Message& message);

  // From now on a thread reads what comes, whatever the caller is stuck in: `take` sees every
  // message first, on that thread, and returns whether it dealt with it; the others are for
  // Receive and Await. Any thread may Send then. Called once.
  void Listen(std::function<bool(const Message&)> take);
  // While it is closed, whoever waits in the meeting, or comes to, gets kSystemFailed.
  void CloseMeeting(bool closed);

 private:
  WorkerLink(const control::ChildRole& role, control::Channel channel,
             std::unique_ptr<control::Segment> segment);
  Status Put(const std::string& key, const std::string& value) override;
  Result<std::string> Get(const std::string& key, Deadline deadline) override;
  using Lock = std::unique_lock<std::mutex>;
  Result<Message> Take(std::optional<std::uint32_t> type, Deadline deadline, bool idle);
  Status SendFrame(control::FrameType type, std::string_view payload);
  // Reads frames, or has them read, sleeping until there is something new.
  Status Wait(Lock& lock, Deadline deadline, std::string_view what);
  void ReadFrames();
  void Sort(control::Frame frame);
  void RunListener();

  const control::ChildRole role_;
  control::Channel channel_;
  std::unique_ptr<control::Segment> segment_;
  journal::JournalWriter journal_;
  control::OutboxWriter outbox_;
  ConnectingMeeting meeting_{*this};
  std::deque<Message> messages_;
  std::uint64_t request_ = 0;  // of the newest Get
  std::optional<std::string> answer_;
  bool meeting_closed_ = false;

  // All of the above but the journal and the outbox, once a listener reads beside the caller.
  std::mutex mutex_;
  std::condition_variable news_;
  std::function<bool(const Message&)> take_;
  std::deque<Message> fresh_;  // not offered to take_ yet
  Fd wake_;                    // an eventfd: the listener is to end
  std::thread listener_;
};

// What only a worker can tell, as it tells it: the library under test, its version, the device, and
// what whoever reads figures must know of it (may be empty), and who notes on the device what it
// begins and ends (empty: nobody). A JSON object of strings.
std::string WorkerFacts(std::string_view backend, const std::string& version,
                        std::string_view device, const std::string& remark,
                        const std::string& device_marks = "");

}  // namespace lockstep::worker
