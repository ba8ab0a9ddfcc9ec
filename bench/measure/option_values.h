// Values on the command line: numbers, and lists of which each value is a case.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/base/argument_parser.h"
#include "core/base/status.h"

namespace lockstep::bench::measure {

// A finite one.
Result<double> ParseNumber(const std::string& option, const std::string& word);

// In the order typed, each once: cases have a name of their own. Of a struct that is by a member.
template <typename T, typename Member = std::identity>
void PutOnce(const T& value, std::vector<T>& values, Member member = {}) {
  if (std::ranges::find(values, std::invoke(member, value), member) != values.end()) return;
  values.push_back(value);
}

// Likewise, but the default first: it is what the others are compared with.
template <typename T>
void PutInto(const T& value, const T& standard, std::vector<T>& values) {
  if (std::find(values.begin(), values.end(), value) != values.end()) return;
  values.insert(value == standard ? values.begin() : values.end(), value);
}

// An option for ReadSwitches, whose name alone means "1".
inline void AddSwitches(ArgumentParser& parser, const std::string& name,
                        std::vector<std::string>& words, const std::string& help) {
  parser.Add(name + "=0|1", words, help).SplitAtCommas().WithoutWordMeans(2, "1");
}
// "0", "1" or both; leaves `values` alone when there are no words.
Status ReadSwitches(const std::string& option, const std::vector<std::string>& words, bool standard,
                    std::vector<bool>& values);

}  // namespace lockstep::bench::measure
