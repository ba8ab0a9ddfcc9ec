// One run of a suite, from the command line to the exit code: what bench and stress share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/status.h"
#include "core/control/context.h"
#include "core/control/facts.h"
#include "core/coordinator/coordinator.h"
#include "core/worker/worker_link.h"
#include "results/store/run.h"
#include "results/store/run_file.h"

namespace lockstep::session {

// The file of a run while the run lasts.
class Output {
 public:
  using Report =
      std::function<Status(const results::store::Run& run, const results::store::RunFile& file)>;

  // `suite`: who says where results go. `asked`: the path; empty: a new one below results/runs.
  Output(std::string suite, const std::string& asked, const results::store::Run& run);

  Status Check() const { return file_.Check(); }
  // Says where results go: once, and again when they go elsewhere.
  void Announce();
  // The part of a launch that is cut off from the others, and rank 0's agent is in it, writes
  // beside the run's name.
  void MoveIfCutOff(const coordinator::Coordinator& coordinator);
  void MoveAside(int rank);
  // What is known so far, as the function puts it together: there may be a second until all of us
  // are killed. Said when it is there. On a busy disk that takes as long as it takes.
  void Save(coordinator::Coordinator& coordinator,
            const std::function<results::store::Run()>& so_far);
  // The same of a run without other agents. False: an older state may stand.
  bool Save(results::store::Run so_far);
  // The file, then the screen: a run that is not where it should be is an error after both.
  Result<ExitCode> Store(results::store::Run& run, const Report& report);

  const results::store::RunFile& file() const { return file_; }

 private:
  const std::string suite_;
  const std::string path_;  // of the whole run
  results::store::RunFile file_;
  std::string announced_;
};

struct Launch {
  control::LaunchContext context;
  int argc = 0;
  const char* const* argv = nullptr;
  std::string command_line = {};
};

struct Plan {
  std::optional<ExitCode> over = {};  // nothing is left to be run by agents
  std::string text = {};              // ... but to be printed
};

// What a session runs; it asks in this order. Errors are of input or environment.
class Suite {
 public:
  virtual ~Suite() = default;
  virtual std::string name() const = 0;  // before what is said on stderr

  // Every agent, before it meets the others.
  virtual Result<Plan> Prepare(const Launch& launch) = 0;
  virtual coordinator::CoordinatorOptions agents() const = 0;

  // The coordinator.
  virtual results::store::Run NewRun() const = 0;             // before anything is known
  virtual std::string output() const = 0;                     // the path, as asked for
  virtual Status CheckOutputs() const { return OkStatus(); }  // others than that
  // Runs it. What is known so far goes to `output` now and then.
  virtual Status Conduct(coordinator::Coordinator& coordinator, results::store::Run& run,
                         Output& output) = 0;
  // The run as it is stored; nothing is asked of the others any more.
  virtual void Conclude(coordinator::Coordinator& coordinator, results::store::Run& run) = 0;
  virtual Status Report(const results::store::Run& run, const results::store::RunFile& file) = 0;

  // The successor of a coordinator that is lost: TakeOver with what is left.
  virtual ExitCode OnFailover(const coordinator::FailoverReport& failover) = 0;

  // The whole life of a worker, of which nothing else is asked. Its exit code.
  virtual int Work(std::unique_ptr<worker::WorkerLink> link) = 0;
};

// The main function of a suite's program, for agents and workers alike.
int Main(Suite& suite, int argc, const char* const* argv);

// The coordinator's part between meeting the others and dismissing them.
Result<ExitCode> Lead(Suite& suite, coordinator::Coordinator& coordinator, results::store::Run& run,
                      Output& output);

// Stores `run`, what is left, as that of the lost coordinator: under its name if the failover is
// whole, else as "<output>-rank<r>-partial.h5". Says so; its result is the successor's exit code.
ExitCode TakeOver(const std::string& suite, const std::string& asked,
                  const coordinator::FailoverReport& failover, results::store::Run run,
                  const Output::Report& report);

// Tells the agent the error in `message`, and leaves with its exit code.
[[noreturn]] void EndWorker(worker::WorkerLink& link, const Status& error,
                            const control::Message& message);

}  // namespace lockstep::session
