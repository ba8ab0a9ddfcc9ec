#include "bench/harness/option_lists.h"

#include <fmt/core.h>

namespace lockstep::bench::harness {

Status ReadSwitches(const std::string& option, const std::vector<std::string>& words, bool standard,
                    std::vector<bool>& values) {
  if (words.empty()) return OkStatus();
  values.clear();
  for (const std::string& word : words) {
    if (word != "0" && word != "1") {
      return InvalidInput(fmt::format("{}: '{}' is none of 0, 1 (or 0,1 for both)", option, word));
    }
    PutInto(word == "1", standard, values);
  }
  return OkStatus();
}

}  // namespace lockstep::bench::harness
