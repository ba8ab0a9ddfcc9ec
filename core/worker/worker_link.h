// The worker's end of everything it shares with its agent.
#ifndef LOCKSTEP_CORE_WORKER_WORKER_LINK_H_
#define LOCKSTEP_CORE_WORKER_WORKER_LINK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"
#include "core/control/message.h"
#include "core/control/outbox.h"
#include "core/control/worker_card.h"
#include "core/journal/journal.h"

namespace lockstep::worker {

class WorkerLink {
 public:
  virtual ~WorkerLink() = default;
  // Whether this process was started as a worker; asked first in main.
  static bool IsWorker();
  // Maps the shared memory, arranges to die with the agent, journals Phase::kStart. Across hosts
  // the process may only be meant to exchange the agents' addresses over MPI: then it exits here;
  // and if the workers own MPI, MPI is initialized (MPI_THREAD_SINGLE) when this returns.
  static Result<std::unique_ptr<WorkerLink>> Open();
  // Where a library should listen for its peers: empty (loopback) when all ranks are on one host,
  // else an address of the network between the hosts (core/control/machine.h).
  static Result<std::string> ListenAddress();

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;
  virtual int lifetime() const = 0;  // 0, 1, …: which worker of this rank
  virtual journal::JournalWriter& journal() = 0;
  virtual control::Outbox& outbox() = 0;
  // What the agent should know of this process even when it is wedged or dead.
  virtual void Introduce(const control::WorkerCard& card) = 0;
  // For RecordedCommunicator::MarkOn.
  virtual std::span<std::byte> device_marks() = 0;
  // Where the ranks of this lifetime exchange addresses, through the agents.
  virtual comm::Meeting& meeting() = 0;

  // The next message of the coordinator. Sleeps (no spinning), after it journaled kIdle. What the
  // worker does with the message it must journal itself, or its silence looks idle.
  // kDeadlineExceeded, or kEnvironment when the agent is gone.
  virtual Result<control::Message> Receive(Deadline deadline) = 0;
  // The next one of that type. Others stay for those who ask for them: on several threads, too.
  virtual Result<control::Message> Receive(std::uint32_t type, Deadline deadline) = 0;
  // The same in the middle of work, without kIdle: silence goes on counting.
  virtual Result<control::Message> Await(std::uint32_t type, Deadline deadline) = 0;
  virtual Status Send(const control::Message& message) = 0;

  // From now on a thread reads what comes, whatever the caller is stuck in: `take` sees every
  // message first, on that thread, and returns whether it dealt with it; the others are for
  // Receive and Await. Any thread may Send then. Called once.
  virtual void Listen(std::function<bool(const control::Message&)> take) = 0;
  // While it is closed, whoever waits in the meeting, or comes to, gets kSystemFailed.
  virtual void CloseMeeting(bool closed) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_CORE_WORKER_WORKER_LINK_H_
