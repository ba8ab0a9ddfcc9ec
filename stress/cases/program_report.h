// How the program of a case ended on a rank, by the rank's own account.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/status.h"

namespace lockstep::stress::cases {

inline constexpr char kWherePlatform[] = "platform";  // before the program could begin

struct ProgramReport {
  Status status;
  std::string where = {};
  std::int64_t iteration = -1;
  std::int64_t checked = 0;
  std::string wrong_data = {};
  std::string gradients = {};
  std::map<std::string, double> figures = {};  // that the program measured of itself
  std::int64_t completed = 0;                  // iterations
};
std::string EncodeReport(const ProgramReport& report);
// A worker is under test: what it says may be anything.
Result<ProgramReport> DecodeReport(const std::string& payload);

}  // namespace lockstep::stress::cases
