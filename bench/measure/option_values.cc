#include "bench/measure/option_values.h"

#include <cmath>
#include <cstdlib>

namespace lockstep::bench::measure {

Result<double> ParseNumber(const std::string& option, const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !std::isfinite(value)) {
    return InvalidInput("{}: '{}' is not a number", option, word);
  }
  return value;
}

Status ReadSwitches(const std::string& option, const std::vector<std::string>& words, bool standard,
                    std::vector<bool>& values) {
  if (words.empty()) return OkStatus();
  values.clear();
  for (const std::string& word : words) {
    if (word != "0" && word != "1") {
      return InvalidInput("{}: '{}' is none of 0, 1 (or 0,1 for both)", option, word);
    }
    PutInto(word == "1", standard, values);
  }
  return OkStatus();
}

}  // namespace lockstep::bench::measure
