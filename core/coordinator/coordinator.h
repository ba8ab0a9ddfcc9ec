// All ranks of a launch as the coordinator (rank 0's agent) sees and commands them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/agent/agent_plugin.h"
#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/control/context.h"
#include "core/control/facts.h"
#include "core/coordinator/host_clocks.h"
#include "core/journal/gpu_sample.h"
#include "core/journal/worker_log.h"
#include "core/verdict/judge.h"
#include "core/verdict/lost_hosts.h"

namespace lockstep::coordinator {

using control::AgentInfo;
using control::LaunchContext;
using control::Message;
using control::WorkerSetup;
using verdict::Loss;
using verdict::RankEvidence;

// What is left of a launch whose coordinator was lost, as the first of the agents that live (the
// successor) gathered it.
struct FailoverReport {
  int successor = 0;  // its rank
  // Nobody else can hold the name of the run's file: others live, and the coordinator is proved to
  // be gone (but not told to end, when it writes the file), or is heard of by the smaller part of
  // the launch only.
  bool whole = false;
  std::vector<AgentInfo> agents;  // one a rank, as are all below
  std::vector<verdict::RankPlace> places;
  std::vector<RankEvidence> evidence;      // of before anything was ended; kLost: nothing was heard
  std::vector<journal::Journal> journals;  // the newest events
  std::vector<std::string> data;           // the bytes of the outboxes, of all lifetimes
  // Some may be missing at the end of a rank's data: more than are kept, or they did not come.
  std::vector<bool> data_cut;
  int lifetime = -1;                    // the newest
  std::vector<std::string> replicated;  // by Coordinator::Replicate, in this order
};

struct CoordinatorOptions : agent::AgentOptions {
  // True when the workers use the launcher's MPI identity as the system under test (backend mpi):
  // one lifetime a launch, and across hosts the worker's MPI exchanges the agents' addresses.
  bool workers_own_mpi = false;
  // ... and call it from a thread of their streams, one at a time (MPI_THREAD_SERIALIZED).
  bool mpi_on_threads = false;
  double connect_deadline_seconds = 60;
  // What the successor does when the coordinator is lost: called once, after the workers of all
  // who are heard of were ended. Its result is this agent's exit code.
  std::function<ExitCode(const FailoverReport&)> on_failover = {};
  // Whether the successor needs the outboxes: followers then keep what they report, up to 1 GiB.
  bool keep_data = false;
};

enum class EventKind {
  kMessage,    // from a worker
  kData,       // drained from a worker's outbox (always before the message that followed it); a
               // drain ends with a whole record if the outbox holds at most kMaxPayloadBytes
  kExited,     // a worker left: exit_code
  kSignalled,  // a worker was ended by a signal
  kStopped,    // a worker was stopped by a signal (it may be continued)
  kContinued,
  kQuiet,      // a worker is silent for quiet_seconds (reported once per silence)
  kOverdue,    // a worker is silent beyond the deadline (reported once per silence)
  kPlugin,     // a plugin reports: message.payload
  kLost,       // an agent does not answer any more, or its launcher's daemon is gone: see places()
  kTerminate,  // the coordinator was told to end (SIGTERM, SIGINT, SIGHUP; its launcher is gone)
  kWarned,     // the launcher continued the coordinator: it may be about to end the launch
  kFault,      // of an order to inject: `news`; message: its number and, in one line, what it is
  kTimeout,    // the deadline of Next passed
};

struct Event {
  EventKind kind = EventKind::kTimeout;
  int rank = -1;
  Message message;  // kMessage; kData: payload
  int exit_code = 0;
  int signal = 0;
  control::FaultNews news = control::FaultNews::kApplied;
};

// The coordinator's view. Single-threaded; sleeps in Next.
class Coordinator {
 public:
  virtual ~Coordinator() = default;
  // Meets the other agents. The control plane listens only where needed (on unix sockets when all
  // ranks are on one host) and admits only peers that know the launch's secret.
  static Result<std::unique_ptr<Coordinator>> Open(const LaunchContext& context,
                                                   const CoordinatorOptions& options);

  virtual int size() const = 0;
  virtual const std::vector<AgentInfo>& agents() const = 0;  // one a rank
  // Where ranks are, and which agents are lost; or may be, when the launch was told to end.
  virtual std::vector<verdict::RankPlace> places() const = 0;
  // The clocks of the hosts, as far as they were measured: once when the agents met. Evidence and
  // journals that the coordinator returns are on the coordinator's counter already, by what was
  // known when they came; samples in outboxes are not.
  virtual const HostClocks& clocks() const = 0;
  // Measures them again, while no worker measures anything: microseconds if it is not yet time for
  // it, else at most some milliseconds. `thoroughly`: all hosts, at the end.
  virtual void MeasureClocks(bool thoroughly) = 0;

  // Starts a worker on every rank (this program again, with its arguments) and counts lifetimes
  // from 0; ends what is left of the one before. With workers_own_mpi only lifetime 0 exists
  // (kUnsupported after it). `setups`: none, or one a rank.
  virtual Status StartWorkers(const std::vector<WorkerSetup>& setups = {}) = 0;
  virtual int lifetime() const = 0;

  virtual void Send(int rank, const Message& message) = 0;
  virtual void SendAll(const Message& message) = 0;
  // The next thing that happened, in order of arrival per rank.
  virtual Event Next(Deadline deadline) = 0;

  // Questions to agents (Collect to TakeData, EndWorkers) wait until each has answered or is lost;
  // a coordinator that was told to end waits for a moment only.
  //
  // What is known of every rank now. Ends nothing. Ranks whose agent does not answer: kLost.
  virtual std::vector<RankEvidence> Collect() = 0;
  // The same without what the operating system says: takes a millisecond and disturbs no worker.
  virtual std::vector<RankEvidence> Glance() = 0;
  // Since an agent was late for a Glance by half a second, or this process for what it waited for:
  // whoever waits for one of them is silent because of that. Infinity: never.
  virtual double SecondsAwake() const = 0;
  // Sends a signal to a rank's worker process, if it runs: a fault from outside.
  virtual void Signal(int rank, int signal) = 0;
  // Has a rank's agent do something to its worker; what comes of it, and its end, are events
  // kFault. `fault` is the caller's number for it.
  virtual void Inject(int rank, std::uint32_t fault, const control::AgentFault& order) = 0;
  virtual void SendToPlugin(int rank, const std::string& order) = 0;
  // The newest events of every rank's journal of this lifetime (for the file).
  virtual std::vector<journal::Journal> Journals(std::size_t most) = 0;
  // Up to `most` of the newest samples of every GPU, of each host that has any.
  virtual std::vector<journal::GpuSamples> ReadGpus(std::size_t most) = 0;
  // The ends of the logs of workers that are gone, of all lifetimes since the last call.
  virtual std::vector<journal::WorkerLog> TakeLogs() = 0;
  // All bytes that are in the outboxes now, and those of kData events, which Next then tells no
  // more.
  virtual std::vector<Event> TakeData() = 0;
  // Ends (SIGKILL to the worker's process group) and reaps what still runs of this lifetime on
  // every rank. Then the remaining kData and kMessage are there for Next, and nothing of this
  // lifetime follows them; deaths that we caused are not told. An agent that does not answer
  // becomes kLost. Idempotent.
  virtual void EndWorkers() = 0;
  // The same for one rank; what was still to be told of its process is dropped.
  virtual void EndWorker(int rank) = 0;
  // A new worker for one rank, of the same lifetime, started as the one before was; ends what is
  // left of that. Its journal is a new one. Keys of the meeting stay: use another prefix.
  virtual Status StartWorker(int rank) = 0;
  // Waits for all workers to leave by themselves, with any exit code; false at the deadline, when
  // one was ended by a signal or lost, or when the coordinator was told to end. Takes no event.
  virtual bool AwaitExits(Deadline deadline) = 0;
  // Has those who may succeed the coordinator keep a record of at most kMaxPayloadBytes.
  virtual void Replicate(const std::string& record) = 0;
  // Before what takes a while on a busy host, such as writing a file: until something is sent to
  // the others, they wait three times as long before they take a coordinator that says nothing for
  // lost.
  virtual void TellBusy() = 0;
  // From now on nothing is asked of the others until Dismiss: they wait 10 minutes for that.
  virtual void Rest() = 0;
  // Tells the followers to go, with the exit code of the launch, and waits at most 2 s for their
  // answers. They wait for the end of the coordinator (at most 3 s), so that the launcher names
  // it and not them: call this last of all, when the file is complete.
  virtual void Dismiss(ExitCode code) = 0;
};

// The life of every agent but rank 0's: join, obey, report, leave when dismissed. Returns the exit
// code. Of who is dismissed it is the coordinator's: launchers pass on that of the rank that they
// see ending first, or the highest one.
ExitCode Follow(const LaunchContext& context, const CoordinatorOptions& options);

// For an agent that found a mistake before it met the others: whether it alone has to tell of it.
// Rank 0 tells of a mistake of all ranks, and the launcher then ends the others. True where the
// coordinator listens on this host, or nobody ends this agent for some seconds.
bool MistakeIsOwn(const LaunchContext& context);

}  // namespace lockstep::coordinator
