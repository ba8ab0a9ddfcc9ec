#include "core/comm/nccl/testing/fake_faults.h"

#include <cstdlib>
#include <sstream>

namespace lockstep::comm::nccl {
namespace {

int NumberAfter(const std::string& word) { return std::atoi(word.c_str() + word.find('=') + 1); }

FakeFault Parse(const std::string& text) {
  FakeFault fault;
  std::istringstream words(text);
  std::getline(words, fault.call, ':');
  for (std::string word; std::getline(words, word, ':');) {
    if (word.starts_with("rank=")) {
      fault.rank = NumberAfter(word);
    } else if (word.starts_with("nth=")) {
      fault.nth = NumberAfter(word);
    } else {
      fault.action = word.substr(0, word.find('='));
      if (word.find('=') != std::string::npos) fault.value = NumberAfter(word);
    }
  }
  return fault;
}

}  // namespace

std::vector<FakeFault> FakeFaultsFromEnvironment() {
  std::vector<FakeFault> faults;
  const char* text = std::getenv("LOCKSTEP_FAKE_NCCL");
  if (text == nullptr) return faults;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ';');) faults.push_back(Parse(part));
  return faults;
}

}  // namespace lockstep::comm::nccl
