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
  Status status;                // ok: finished; kSystemFailed: raised
  std::string where = {};       // "join_exit": the part of the program it was in
  std::int64_t iteration = -1;  // of this rank, from 0
  std::int64_t checked = 0;     // elements of results that were compared
  std::int64_t unchecked = 0;   // results that were not compared
  std::string wrong_data = {};  // the first wrong element; empty: none
  std::string gradients = {};   // fingerprint where all ranks must have the same; else empty
  Figures figures = {};
  std::int64_t completed = 0;  // iterations

  // For control::Encode.
  static void Describe(auto& fields, auto& report) {
    fields(report.status, report.where, report.iteration, report.checked, report.unchecked);
    fields(report.wrong_data, report.gradients, report.figures, report.completed);
  }
};

}  // namespace lockstep::stress::workloads
