// The little of rtnetlink(7) that a wire needs: which way packets go, and another way for them.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace lockstep::stress::network {

// IPv4 addresses are in the byte order of this machine; interfaces are indices.
struct Route {
  int interface = 0;
  std::uint32_t source = 0;  // the address that packets get that have none
};

// kEnvironment in one line, each.
Result<Route> RouteTo(std::uint32_t address);
Status AddRoute(std::uint32_t address, const Route& route);
// Empty: it has none.
Result<std::string> AliasOf(int interface);

}  // namespace lockstep::stress::network
