// Lists of values on the command line, each value a case.
#ifndef LOCKSTEP_BENCH_HARNESS_OPTION_LISTS_H_
#define LOCKSTEP_BENCH_HARNESS_OPTION_LISTS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace lockstep::bench::harness {

// In the order typed, but the default first: it is what the others are compared with.
template <typename T>
void PutInto(const T& value, const T& standard, std::vector<T>& values) {
  if (std::find(values.begin(), values.end(), value) != values.end()) return;
  values.insert(value == standard ? values.begin() : values.end(), value);
}

// "0", "1" or both; leaves `values` alone when there are no words.
Status ReadSwitches(const std::string& option, const std::vector<std::string>& words, bool standard,
                    std::vector<bool>& values);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_OPTION_LISTS_H_
