// PyTorch's Flight Recorder, where nobody sees the calls themselves: its dumps, asked for and
// judged. Each watcher asks the ranks that it started; that of rank 0 gathers all dumps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "core/flight/diagnosis.h"
#include "core/flight/files.h"

namespace lockstep::watch::run {

// Where a rank has its pipe, and where it writes when somebody writes into that: a path without the
// rank's number each.
struct FlightPaths {
  std::string pipe;
  std::string dump;
};

// What a rank wrote, which may not be whole yet.
struct WrittenDump {
  int rank = 0;
  std::string bytes;
};

// Ranks of other watchers.
class FlightElsewhere {
 public:
  virtual ~FlightElsewhere() = default;
  virtual std::vector<int> AskForDumps() = 0;  // the ranks that were asked
  virtual std::vector<WrittenDump> Dumps() = 0;
};

class Flight {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  Flight();
  ~Flight() { Remove(); }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  // What ranks left at paths of ours.
  void Remove() const;
  // For the command: those that the user did not set.
  const Variables& variables() const { return variables_; }
  // Between looks. `silent`: nobody was seen to call anything for `silence_s`. Then asks all ranks
  // that have a pipe, once the youngest pipe of this watcher's ranks is as old, and again after
  // such a time. The diagnosis when all have answered. `elsewhere` may be null.
  std::optional<flight::FlightDiagnosis> Look(bool silent, double silence_s,
                                              FlightElsewhere* elsewhere);

  // For another watcher: asks the ranks of this one that have a pipe, and gives their numbers.
  std::vector<int> Ask();
  // What this rank wrote since then; "": nothing.
  std::string Written(int rank) const;

 private:
  std::optional<flight::FlightDiagnosis> Judge(double silence_s, FlightElsewhere* elsewhere);
  flight::FlightFiles Files(FlightElsewhere* elsewhere) const;
  std::int64_t PipeAgeNs() const;

  std::string own_;  // how paths of ours begin
  Fd held_;          // as long as it is, no other watcher removes them
  FlightPaths paths_;
  Variables variables_;
  std::int64_t asked_ns_ = 0;  // or when watching began, or the youngest pipe was made
  std::int64_t next_try_ns_ = 0;
  std::map<int, std::int64_t> waiting_;  // by rank of this watcher, when its dump was written last
  std::set<int> asked_;                  // ranks of all watchers
};

}  // namespace lockstep::watch::run
