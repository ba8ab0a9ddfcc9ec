// Each library's syntax, on a host with three interfaces.
#include "core/environment/interface_names.h"

#include <gtest/gtest.h>

namespace lockstep::environment {
namespace {

const std::vector<Interface> kHost = {
    {"lo", "127.0.0.1"}, {"eth0", "10.1.2.3"}, {"ib0", ""}, {"eth0", ""}};

Facts Absent(const std::string& name, const std::string& value) {
  return AbsentInterfaces({{"variables/" + name, value}}, kHost);
}

void ExpectLost(const std::string& name, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    EXPECT_EQ(Absent(name, value), (Facts{{"network/no_interface/" + name, name + "=" + value}}));
  }
}

void ExpectThere(const std::string& name, const std::vector<std::string>& values) {
  for (const std::string& value : values) EXPECT_EQ(Absent(name, value), Facts{}) << value;
}

TEST(InterfaceNamesTest, NcclTakesPrefixesExactNamesExclusionsAndLists) {
  ExpectLost("NCCL_SOCKET_IFNAME",
             {"absent0", "=eth", "absent0,en", "th0", "^lo,eth,ib", "^=lo,eth0,ib0", "eth1:5000"});
  ExpectThere("NCCL_SOCKET_IFNAME", {"eth", "eth0", "=eth0", "absent0,ib", "^absent0", "^lo,eth",
                                     "^=eth,ib,lo", "eth0:5000", "=absent0,eth0", "", "x", "^,"});
}

TEST(InterfaceNamesTest, GlooNeedsAllNamesExactly) {
  ExpectLost("GLOO_SOCKET_IFNAME", {"absent0", "eth", "eth0,absent0"});
  ExpectThere("GLOO_SOCKET_IFNAME", {"eth0", "eth0,ib0", "lo", ""});
}

TEST(InterfaceNamesTest, OpenMpiTakesNamesAndNetworks) {
  for (const std::string name : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include"}) {
    ExpectLost(name, {"absent0", "eth", "192.168.0.0/16", "10.1.2.3", "10.1.3.0/24", "absent0,eth1",
                      "10.1.2.0/33", "10.1.2.0/", "10.1/16", "10.1.2.0/2x"});
    ExpectThere(name, {"eth0", "ib0", "10.0.0.0/8", "10.1.2.3/32", "0.0.0.0/0", "eth0,10.0.0.0/8",
                       "127.0.0.0/8", "fd00::/8", ""});
    EXPECT_EQ(Absent(name, "eth0,absent0,192.168.0.0/16"),
              (Facts{{"network/some_interfaces_absent/" + name,
                      "absent0,192.168.0.0/16 of " + name + "=eth0,absent0,192.168.0.0/16"}}));
  }
}

TEST(InterfaceNamesTest, OtherVariablesAndUnknownHostsTellNothing) {
  EXPECT_EQ(Absent("OMPI_MCA_btl_tcp_if_exclude", "absent0"), Facts{});
  EXPECT_EQ(AbsentInterfaces({{"variables/GLOO_SOCKET_IFNAME", "absent0"}}, {}), Facts{});
}

}  // namespace
}  // namespace lockstep::environment
