// All ranks in one process, in virtual time, in an order that follows from a seed: the oracle for
// what a program of collectives must do, and the only way to run 100,000 ranks here.
//
//   SimWorld world({.ranks = 4, .rules = SimRules::kGloo, .seed = 7});
//   const SimReport report = world.Run([](RankContext& context) -> Status {
//     const auto communicator = context.Connect();
//     const auto stream = context.device().NewInlineStream();
//     return communicator->Enqueue(operation, buffers, *stream);
//   });
//
// Each rank is a fiber on the calling thread; each FIFO stream is one more. In Run, NowTicks
// is virtual nanoseconds and deadlines are virtual (core/base/clock.h), so code that knows nothing
// of simulation journals and waits in virtual time. Code takes no time, but for Compute and Sleep.
//
// A rank that is over while its stack is not (killed, left hanging at the end, Exit) is unwound:
// the wait it is in throws a private exception that is no std::exception, first in the work of its
// streams, then in its body, so that destructors run. A wait on the way (in a destructor during the
// unwinding) returns an error at once. A destructor of the body's own that waits outside of
// unwinding must be noexcept(false); those of sim's own objects never throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/communicator.h"
#include "core/comm/sim/rules.h"
#include "core/device/device.h"

namespace lockstep::comm::sim {

struct SimOptions {
  int ranks = 2;
  SimRules rules = SimRules::kNccl;
  std::uint64_t seed = 1;
  SimNetwork network = {};
  // The world ends when nothing would happen for so long: who waits then hangs.
  std::int64_t silence_ns = std::int64_t{3600} * 1'000'000'000;
  std::size_t stack_bytes = 256 * 1024;         // of a rank and of each of its FIFO streams
  std::uint64_t most_switches = 1'000'000'000;  // a bound for programs that poll for ever
  // Asked now and then: true ends the world.
  std::function<bool()> interrupted = {};
};

// What comes from outside, at a virtual time.
struct SimFault {
  enum class Kind : std::uint8_t { kKill, kStop, kContinue };
  Kind kind = Kind::kKill;
  int rank = 0;
  std::int64_t at_ns = 0;
};

enum class RankState : std::uint8_t {
  kFinished,  // the body returned, or lingers
  kFailed,    // it returned an error or threw
  kExited,    // it called Exit
  kCrashed,   // Crash, or the library ended the process (gloo: a message longer than its receive)
  kKilled,
  kStopped,
  kHung,
};
std::string_view NameOf(RankState state);

// The oldest collective of a rank that did not complete.
struct SimWaiting {
  int communicator = 0;        // 0: the world
  std::uint64_t sequence = 0;  // on that communicator, from 0
  Operation operation;
};

struct RankEnd {
  RankState state = RankState::kHung;
  std::string message;     // kFailed, kCrashed: why
  int exit_code = 0;       // kExited
  std::int64_t at_ns = 0;  // when; of kHung and kStopped: when the world ended
  std::optional<SimWaiting> waiting;
  std::string where;  // kHung, kStopped: what it waits for, in words
};

struct SimReport {
  std::vector<RankEnd> ranks;
  std::int64_t end_ns = 0;  // when nothing could happen any more
  bool complete = true;     // false: ended by most_switches, or interrupted
};

struct SimState;  // of the world

// One rank's hold of the world; lives as long as its body.
class RankContext {
 public:
  RankContext(SimState& state, int rank);
  ~RankContext();
  RankContext(const RankContext&) = delete;
  RankContext& operator=(const RankContext&) = delete;

  int rank() const { return rank_; }
  int size() const;
  // A communicator of all ranks. The n-th call of each rank gives the same one; nobody waits.
  std::unique_ptr<Communicator> Connect();
  // Waits until every rank of the world has come here as often as this one.
  void Meet();
  device::Device& device() { return *device_; }
  std::int64_t now_ns() const;
  void Sleep(std::int64_t ns);
  // Waits for ever if the world is interrupted: for programs that may never wait.
  void HeedInterrupt();
  void Compute(std::int64_t ns);  // Sleep, by another name in a report
  // Ends of this rank. Exit does not return an error to anyone: the process is gone.
  [[noreturn]] void Exit(int code);
  [[noreturn]] void Fail(std::string message);
  [[noreturn]] void Crash(std::string message);
  [[noreturn]] void Hang();
  // The body is done, but the process stays (its connections too) until the world ends.
  [[noreturn]] void Linger();
  // One of this rank that is due takes effect before it returns (a kill: it does not).
  void Inject(const SimFault& fault);

 private:
  void Pass(std::int64_t ns, std::string_view what);
  [[noreturn]] void Leave(RankState how, std::string message, int exit_code = 0);
  [[noreturn]] void WaitForEver(std::string_view what);

  SimState& state_;
  int rank_;
  std::unique_ptr<device::Device> device_;
};

class SimWorld {
 public:
  using Body = std::function<Status(RankContext& context)>;

  explicit SimWorld(const SimOptions& options);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  void Schedule(const SimFault& fault);  // before Run
  // Once. Communicators, streams and buffers of the bodies must be gone when it returns.
  SimReport Run(const Body& body);

 private:
  std::unique_ptr<SimState> state_;
  bool ran_ = false;
};

}  // namespace lockstep::comm::sim
