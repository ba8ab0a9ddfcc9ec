// What is left of a watcher that was killed with all who would have cleared up.
#include "watch/run/folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "watch/run/watcher_file.h"

namespace lockstep::watch::run {
namespace {

namespace fs = std::filesystem;

// A process that has made a folder, and waits to be killed.
class OtherWatcher {
 public:
  OtherWatcher() {
    int ends[2];
    if (pipe(ends) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      const Result<std::unique_ptr<Folder>> made = Folder::Make();
      const std::string path = made.ok() ? (*made)->path().string() : "";
      if (write(ends[1], path.data(), path.size()) < 0) _exit(1);
      for (;;) pause();
    }
    char text[256];
    const ssize_t length = read(ends[0], text, sizeof text);
    close(ends[0]);
    close(ends[1]);
    if (length > 0) path_.assign(text, static_cast<std::size_t>(length));
  }
  ~OtherWatcher() { Kill(); }
  void Kill() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  const std::string& path() const { return path_; }

 private:
  pid_t child_ = -1;
  std::string path_;
};

TEST(Folders, TheNextWatcherSweepsWhatNobodyHolds) {
  OtherWatcher other;
  ASSERT_TRUE(fs::exists(other.path()));
  ASSERT_TRUE(Folder::Make().ok());
  EXPECT_TRUE(fs::exists(other.path()));
  other.Kill();
  // Other watchers of this host sweep, too: one of them may hold it, and get no processor.
  while (fs::exists(other.path())) ASSERT_TRUE(Folder::Make().ok());
}

// A process that makes folders, one after the other. Its exit code: all were where they belong.
pid_t MakeMany() {
  const pid_t child = fork();
  if (child != 0) return child;
  for (int each = 0; each < 300; ++each) {
    const Result<std::unique_ptr<Folder>> made = Folder::Make();
    if (!made.ok() || (*made)->path().parent_path() != FolderParents().front()) _exit(1);
  }
  _exit(0);
}

TEST(Folders, OneThatBeginsIsNotSwept) {
  std::vector<pid_t> children;
  for (int each = 0; each < 4; ++each) children.push_back(MakeMany());
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(Folders, OneWithoutALockIsNewOrOfAnOlderVersion) {
  std::string path = "/tmp/lockstep-watch-1-XXXXXX";
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  ASSERT_TRUE(Folder::Make().ok());
  EXPECT_TRUE(fs::exists(path));
  fs::remove(path);
}

}  // namespace
}  // namespace lockstep::watch::run
