// What a version looks like, and that all that is told of it comes from the file VERSION.
#include "core/base/version.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <string>

namespace lockstep {
namespace {

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string NumberInFile() {
  const std::string text = FileText("VERSION");
  return text.substr(0, text.find('\n'));
}

// What the build generates for these lines of scripts/workspace_status.
std::string StampOf(const std::string& status) {
  const std::string path = testing::TempDir() + "/status";
  std::ofstream(path) << status;
  std::FILE* pipe = popen(("core/base/write_version_stamp.sh VERSION " + path).c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

TEST(VersionTest, InWords) {
  EXPECT_EQ(TextOf({"1.2.3", "", false}), "1.2.3");
  EXPECT_EQ(TextOf({"1.2.3", "1a2b3c4", false}), "1.2.3 (1a2b3c4)");
  EXPECT_EQ(TextOf({"1.2.3", "1a2b3c4", true}), "1.2.3 (1a2b3c4, modified)");
  EXPECT_EQ(TextOf({}), "");
}

TEST(VersionTest, TheNumberIsThatOfTheFile) {
  EXPECT_EQ(ThisVersion().number, NumberInFile());
  EXPECT_TRUE(std::regex_match(NumberInFile(), std::regex(R"(\d+\.\d+\.\d+)")));
  EXPECT_EQ(FileText("VERSION"), NumberInFile() + "\n");
}

TEST(VersionTest, TheNewestVersionOfTheChangelogIsThisOne) {
  const std::string text = FileText("CHANGELOG.md");
  std::smatch heading;
  ASSERT_TRUE(std::regex_search(text, heading, std::regex(R"(\n## \[(\d[^\]]*)\])")));
  EXPECT_EQ(heading[1], NumberInFile());
}

TEST(VersionTest, TheStampHasTheCommitOfTheStatus) {
  const std::string changed =
      StampOf("BUILD_HOST x\nSTABLE_LOCKSTEP_COMMIT 1a2b3c4\nSTABLE_LOCKSTEP_MODIFIED true\n");
  EXPECT_NE(changed.find("kVersionCommit = \"1a2b3c4\";"), std::string::npos) << changed;
  EXPECT_NE(changed.find("kVersionModified = true;"), std::string::npos) << changed;
  const std::string clean = StampOf("STABLE_LOCKSTEP_COMMIT 1a2b3c4\n");
  EXPECT_NE(clean.find("kVersionModified = false;"), std::string::npos) << clean;
  const std::string release = StampOf("BUILD_HOST x\n");
  EXPECT_NE(release.find("kVersionCommit = \"\";"), std::string::npos) << release;
  EXPECT_NE(release.find("kVersionNumber = \"" + NumberInFile() + "\";"), std::string::npos)
      << release;
}

}  // namespace
}  // namespace lockstep
