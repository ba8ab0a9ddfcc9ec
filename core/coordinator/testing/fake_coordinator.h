// Test material: a coordinator that plays a list of what happens, and writes down what it was told
// to do. Nothing runs, and time is virtual: it passes only while Next or AwaitExits wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/coordinator/coordinator.h"

namespace lockstep::coordinator {

// One line of the list.
struct ScriptStep {
  enum class Kind : std::uint8_t {
    kEvent,    // Next returns it
    kRanks,    // what looks at the ranks show from now on; of several in a row each shows one
               // look. Their ticks count from kBeforeNs before the coordinator was made
    kAfter,    // what follows comes so much later
    kWhen,     // what follows waits for a command that begins like this
    kRefused,  // the next order to start fails
    kLate,     // until now an agent was late
  };
  Kind kind = Kind::kEvent;
  Event event = {};
  std::vector<verdict::RankEvidence> ranks = {};
  double seconds = 0;
  std::string command = {};
  Status refusal = {};
  verdict::Loss loss = verdict::Loss::kNone;  // of an event kLost
};
using Script = std::vector<ScriptStep>;

ScriptStep Ranks(std::vector<verdict::RankEvidence> ranks);
ScriptStep After(double seconds);
ScriptStep When(std::string command);
ScriptStep Refused(Status status);
ScriptStep Late();
ScriptStep Exited(int rank, int code);
ScriptStep Signalled(int rank, int signal);
ScriptStep Stopped(int rank, int signal);
ScriptStep Of(EventKind kind, int rank = -1);  // an event that says no more than that
ScriptStep Lost(int rank, verdict::Loss loss);
ScriptStep Said(int rank, std::uint32_t type, std::string payload = "");
ScriptStep Wrote(int rank, std::string bytes);
ScriptStep FromPlugin(int rank, std::string report);
ScriptStep OfFault(int rank, std::uint32_t fault, control::FaultNews news, std::string note = "");

// A list of steps and lists.
inline void Append(Script& all, ScriptStep step) { all.push_back(std::move(step)); }
inline void Append(Script& all, const Script& steps) {
  all.insert(all.end(), steps.begin(), steps.end());
}
template <typename... Parts>
Script Steps(Parts... parts) {
  Script all;
  (Append(all, std::move(parts)), ...);
  return all;
}

class FakeCoordinator final : public Coordinator {
 public:
  static constexpr std::int64_t kBeginNs = 1'000'000'000'000;
  static constexpr std::int64_t kBeforeNs = 1'000'000;

  // `name`: a message in few words. `hosts`: one a rank; none: all on one.
  using Name = std::function<std::string(const control::Message&)>;
  FakeCoordinator(int ranks, Script steps, Name name, const std::vector<std::string>& hosts = {});

  // Orders, a line each: "start", "send 1 abort 0", "signal 1 9", "end" …
  const std::vector<std::string>& commands() const { return commands_; }
  // What else the code under test did, in order with its commands.
  void Note(std::string line) { commands_.push_back(std::move(line)); }
  // Steps that nobody has taken.
  std::size_t left() const { return steps_.size() - next_; }
  double seconds() const { return static_cast<double>(now_ns_ - kBeginNs) * 1e-9; }

  int size() const override { return static_cast<int>(agents_.size()); }
  const std::vector<control::AgentInfo>& agents() const override { return agents_; }
  std::vector<verdict::RankPlace> places() const override { return places_; }
  const HostClocks& clocks() const override { return clocks_; }
  void MeasureClocks(bool thoroughly) override;
  Status StartWorkers(const std::vector<control::WorkerSetup>& setups) override;
  int lifetime() const override { return lifetime_; }
  void Send(int rank, const control::Message& message) override;
  void SendAll(const control::Message& message) override;
  Event Next(Deadline deadline) override;
  std::vector<verdict::RankEvidence> Collect() override;
  std::vector<verdict::RankEvidence> Glance() override;
  double SecondsAwake() const override { return static_cast<double>(now_ns_ - late_ns_) * 1e-9; }
  void Signal(int rank, int signal) override;
  void Inject(int rank, std::uint32_t fault, const control::AgentFault& order) override;
  void SendToPlugin(int rank, const std::string& order) override;
  std::vector<journal::Journal> Journals(std::size_t most) override;
  std::vector<journal::GpuSamples> ReadGpus(std::size_t) override { return {}; }
  std::vector<journal::WorkerLog> TakeLogs() override { return {}; }
  std::vector<Event> TakeData() override;
  void EndWorkers() override;
  void EndWorker(int rank) override;
  Status StartWorker(int rank) override;
  bool AwaitExits(Deadline deadline) override;
  void Replicate(const std::string& record) override { Note("replicate " + record); }
  void TellBusy() override { Note("busy"); }
  void Rest() override { Note("rest"); }
  void Dismiss(ExitCode) override { Note("dismiss"); }

 private:
  // The event that has come by `deadline`, to which time moves if there is none.
  ScriptStep* Reach(Deadline deadline);
  void Show(std::vector<verdict::RankEvidence> ranks);
  // What answers to a question tell before Next does.
  void HearOfLosses();
  bool WasCommanded(const std::string& begin);
  Status Start(std::string command);

  std::int64_t now_ns_ = kBeginNs;
  std::int64_t late_ns_ = 0;  // long ago
  VirtualTime time_{&now_ns_};
  Script steps_;
  std::size_t next_ = 0;
  Name name_;
  std::vector<control::AgentInfo> agents_;
  std::vector<verdict::RankPlace> places_;
  HostClocks clocks_;
  std::vector<std::string> commands_;
  std::size_t answered_ = 0;  // commands that steps before waited for
  std::vector<std::vector<verdict::RankEvidence>> looks_;
  std::int64_t shown_ns_ = kBeginNs;  // when the newest were
  bool shown_ = true;  // the looks were there before the newest event
  Deadline until_;     // of the step kAfter that is the next
  bool waits_ = false;
  int lifetime_ = -1;
  int idle_ = 0;
};

}  // namespace lockstep::coordinator
