// A segment is found when its file appears, and becomes a process when its writer knows its rank.
//
// A folder is held by a lock, which ends with the last process that has it: the watcher, its
// keeper or its janitor. Pids would not do: another process may have one by now, and those of a
// container say nothing outside of it. A folder without a lock is new, or of an older version, and
// is left alone.
#include "watch/run/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <system_error>

#include "watch/run/watcher_file.h"

namespace lockstep::watch::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = "lock";

void AbandonAll(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == events::kSuffix) SegmentReader::Abandon(entry.path().string());
  }
  fs::remove_all(folder, error);
}

void SweepFolders() {
  for (const fs::path& folder : FoldersOfWatchers()) {
    const Fd lock = TakeLock(folder / kLock);
    if (lock.valid()) AbandonAll(folder);
  }
}

}  // namespace

Fd HoldLock(const fs::path& path) {
  const std::string early = path.string() + ".new";
  Fd file(open(early.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return file;
  const bool held = flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  if (held && rename(early.c_str(), path.c_str()) == 0) return file;
  unlink(early.c_str());
  return Fd();
}

Fd TakeLock(const fs::path& path) {
  Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return file.valid() && flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(file) : Fd();
}

Result<std::unique_ptr<Folder>> Folder::Make() {
  SweepFolders();
  for (const fs::path& parent : FolderParents()) {
    std::string path = fmt::format("{}/{}{}-XXXXXX", parent.string(), kFolderPrefix, getpid());
    if (mkdtemp(path.data()))
      return std::unique_ptr<Folder>(new Folder(path, HoldLock(fs::path(path) / kLock)));
  }
  return EnvironmentError("no folder for events: make /dev/shm or /tmp writable");
}

Folder::~Folder() { Remove(); }

void Folder::Remove() const {
  std::error_code error;
  fs::remove_all(path_, error);
}

void Folder::Abandon() const { AbandonAll(path_); }

std::vector<std::unique_ptr<LocalProcess>> Folder::TakeNew() {
  std::error_code error;
  std::set<std::string> known;  // those that are there still: another process may get the number
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != events::kSuffix) continue;
    if (known_.count(path) == 0) {
      Result<std::unique_ptr<SegmentReader>> reader = SegmentReader::Open(path);
      if (!reader.ok()) continue;
      waiting_[path] = std::move(*reader);
    }
    known.insert(path);
  }
  if (!error) known_ = std::move(known);
  std::vector<std::unique_ptr<LocalProcess>> fresh;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const events::Header& header = it->second->header();
    const int rank = header.rank.load(std::memory_order_acquire);
    if (rank < 0 || rank >= header.size.load()) {
      ++it;
      continue;
    }
    fresh.push_back(std::make_unique<LocalProcess>(std::move(it->second), lines_, endings_));
    it = waiting_.erase(it);
  }
  return fresh;
}

}  // namespace lockstep::watch::run
