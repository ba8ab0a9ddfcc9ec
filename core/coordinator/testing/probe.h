// The parts of launch_probe, the program with which the launch tests are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/random.h"
#include "core/coordinator/coordinator.h"

namespace lockstep::coordinator {

// Message types; orders to workers are texts ("echo 1") of type kOrder.
inline constexpr std::uint32_t kOrder = 1, kReady = 2, kEcho = 3, kProgress = 4, kDone = 5;

inline constexpr std::size_t kOutboxBytes = 1 << 16;

int RunProbeWorker();

// Bounds a hang, on a machine of any load.
inline Deadline Soon() { return Deadline::AfterSeconds(60); }

// The driver's tools. Every expectation that fails ends the program with exit code 20.
class ProbeDriver {
 public:
  ProbeDriver(Coordinator& coordinator, std::uint64_t seed);

  Coordinator& coordinator() { return coordinator_; }
  Random& random() { return random_; }
  int size() const { return coordinator_.size(); }
  // Starts the workers and waits until each told its process number.
  void Start();
  // … and until something of each came that it streams, which it then does for ever.
  void StartStreams();
  void Order(int rank, const std::string& text);
  void OrderAll(const std::string& text);
  // Takes events, keeping data, until one of this kind (of this rank, if >= 0) comes; none of
  // `not_before` may come first.
  Event Await(EventKind kind, int rank, std::initializer_list<EventKind> not_before = {});
  Event AwaitAny(std::initializer_list<EventKind> kinds);
  // One kEcho of every rank.
  std::vector<std::string> AwaitEchoes();
  void ExpectQuiet(double seconds);  // nothing but messages and data
  // Longer than these seconds, which make a silence overdue, all but `stopped` stream. One that
  // waited for a processor, or whose agent did, may be overdue: then it streams on, and the time
  // begins anew.
  void ExpectStreams(double silence_seconds, int stopped = -1);
  int pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  // Whole records, consecutive from 0; returns how many.
  std::size_t CheckData(int rank);
  void End();
  static void Expect(bool condition, const std::string& what);

 private:
  Event Next(Deadline deadline);      // its data is kept
  Event NextButTalk(double seconds);  // neither messages nor data
  void ExpectGoesOn(int rank, double silence_seconds);
  Coordinator& coordinator_;
  Random random_;
  std::vector<int> pids_;
  std::vector<std::string> data_;
};

struct ProbeScenario {
  bool mpi = false;  // the workers own MPI
  std::function<int(ProbeDriver&)> run;
  double silence_seconds = 60;  // that are too long
};
const std::map<std::string, ProbeScenario>& Scenarios();

}  // namespace lockstep::coordinator
