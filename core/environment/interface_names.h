// Do the interfaces exist that variables name? A library that finds none fails to start, or hangs.
#pragma once

#include <string>
#include <vector>

#include "core/environment/facts.h"

namespace lockstep::environment {

// An interface with one of its addresses, as getifaddrs tells them. `address`: of IPv4, or empty.
struct Interface {
  std::string name;
  std::string address;
};

// Of VariableFacts: {"network/no_interface/NCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME=ib0"} where a
// library finds none of what its variable names; ".../some_interfaces_absent/..." where Open MPI
// lacks some of them, "eth9 of OMPI_MCA_btl_tcp_if_include=eth0,eth9". Nothing of no interfaces.
Facts AbsentInterfaces(const Facts& variables, const std::vector<Interface>& interfaces);

}  // namespace lockstep::environment
