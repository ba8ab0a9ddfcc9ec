#include "watch/run/preloadable.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

namespace lockstep::watch::run {
namespace {

TEST(Preloadable, WhatIsNoProgramIsNoReason) {
  for (const char* word :
       {"", "-n", "2", "no-such-program", "/etc", "/etc/passwd", "sh", "/bin/sh"}) {
    EXPECT_EQ(WhyNotPreloaded(word), "") << word;
  }
}

TEST(Preloadable, AScriptIsNotStatic) {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/script";
  std::ofstream(path) << "#!/bin/sh\nexit 0\n";
  chmod(path.c_str(), 0755);
  EXPECT_EQ(WhyNotPreloaded(path), "");
}

}  // namespace
}  // namespace lockstep::watch::run
