// Programs that no library can be preloaded into.
#pragma once

#include <string>

namespace lockstep::watch::run {

// "it is linked statically"; empty where a library can be preloaded, or where `word` of a command
// line is no program.
std::string WhyNotPreloaded(const std::string& word);

}  // namespace lockstep::watch::run
