// How the program of a case ended on a rank, by the rank's own account.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/status.h"

namespace lockstep::stress::workloads {

inline constexpr char kWherePlatform[] = "platform";  // before the program could begin

// What a program measured of itself, by name.
using Figures = std::map<std::string, double>;

struct ProgramReport {
  Status status;                      // ok: finished; kSystemFailed: raised
  std::string where = {};             // "join_exit": the part of the program it was in
  std::int64_t iteration = -1;        // of this rank, from 0
  std::int64_t checked = 0;           // elements of results that were compared
  std::int64_t unchecked = 0;         // results that were not compared
  std::string wrong_data = {};        // the first wrong element; empty: none
  std::int64_t wrong_iteration = -1;  // that they are of; -1: not known
  std::string gradients = {};         // fingerprint where all ranks must have the same; else empty
  Figures figures = {};
  std::int64_t completed = 0;  // iterations

  // For control::Encode.
  static void Describe(auto& fields, auto& report) {
    fields(report.status, report.where, report.iteration, report.checked, report.unchecked);
    fields(report.wrong_data, report.wrong_iteration, report.gradients, report.figures);
    fields(report.completed);
  }
};

// Wrong data of iterations that no rank repeats outlive a recovery: what a rank reports after it
// speaks of them.
class WrongDataKept {
 public:
  // The ranks go on from `first_iteration`.
  void Keep(const ProgramReport& report, std::int64_t first_iteration) {
    if (report.wrong_iteration < first_iteration && first_.empty()) first_ = report.wrong_data;
  }
  void AddTo(ProgramReport& report) const {
    if (first_.empty()) return;
    report.wrong_data = first_;
    report.wrong_iteration = -1;
  }

 private:
  std::string first_;
};

}  // namespace lockstep::stress::workloads
