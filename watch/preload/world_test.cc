#include "watch/preload/world.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lockstep::watch::preload {
namespace {

using namespace std::string_view_literals;

std::string NameOf(std::string_view words) {
  char name[64] = "";
  return NameOfLaunch(words.data(), words.size(), name, sizeof name) ? name : "none";
}

TEST(Hydra, ProxiesOfOneMpiexecShareItsControlPort) {
  EXPECT_EQ(NameOf("/usr/bin/hydra_pmi_proxy\0--control-port\0node1:4711\0--pgid\0"
                   "0\0--proxy-id\0"
                   "0\0"sv),
            "node1:4711/0");
  EXPECT_EQ(NameOf("hydra_pmi_proxy\0--control-port\0node1:4711\0--proxy-id\0"
                   "1\0"sv),
            "node1:4711/0");
}

TEST(Hydra, AnotherLaunchAndWhatIsSpawnedHaveAnotherName) {
  EXPECT_EQ(NameOf("hydra_pmi_proxy\0--control-port\0node1:4712\0"sv), "node1:4712/0");
  EXPECT_EQ(NameOf("hydra_pmi_proxy\0--control-port\0node1:4711\0--pgid\0"
                   "1\0"sv),
            "node1:4711/1");
}

TEST(Hydra, AnotherProgramNamesNone) {
  EXPECT_EQ(NameOf("sh\0-c\0mpiexec --control-port x:1\0"sv), "none");
  EXPECT_EQ(NameOf("hydra_pmi_proxy\0--control-port\0"sv), "none");
  EXPECT_EQ(NameOf(""sv), "none");
}

}  // namespace
}  // namespace lockstep::watch::preload
