// Texts about ranks that run on several hosts.
#pragma once

#include <functional>
#include <string>

namespace lockstep::watch::report {

// "rank 3" becomes "rank 3 (host node4)" where it is named first. `host_of`: "" where not known.
std::string NameHosts(const std::string& text, const std::function<std::string(int)>& host_of);

}  // namespace lockstep::watch::report
