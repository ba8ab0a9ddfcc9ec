// PyTorch's Flight Recorder, where nobody sees the calls themselves: its dumps, asked for and
// judged. Ranks of this host only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/flight/diagnosis.h"

namespace lockstep::watch::run {

// Where a rank has its pipe, and where it writes when somebody writes into that: a path without the
// rank's number each.
struct FlightPaths {
  std::string pipe;
  std::string dump;
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
  // that have a pipe, and again after such a time. The diagnosis when all have answered.
  std::optional<flight::FlightDiagnosis> Look(bool silent, double silence_s);

 private:
  void Ask();
  std::optional<flight::FlightDiagnosis> Judge(double silence_s);

  std::string own_;  // how paths of ours begin
  FlightPaths paths_;
  Variables variables_;
  std::int64_t asked_ns_ = 0;  // or when watching began
  std::int64_t next_try_ns_ = 0;
  std::map<int, std::int64_t> waiting_;  // by rank, when its dump was written last
};

}  // namespace lockstep::watch::run
