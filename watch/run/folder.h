// The folder of a watcher, in which the processes of this host write segments.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "core/base/status.h"
#include "watch/events/segment.h"
#include "watch/run/local_process.h"

namespace lockstep::watch::run {

// A new file with a lock that lasts as long as a process has the descriptor. The lock gets its name
// when it is held: whoever found it before would sweep what begins. Not valid where the file system
// knows no locks: then nobody sweeps.
Fd HoldLock(const std::filesystem::path& path);
// That of a file whose holders are gone; else not valid.
Fd TakeLock(const std::filesystem::path& path);

// A new folder for segments; removed with its contents. So are those of watchers that were killed
// together with whoever would have done that.
class Folder {
 public:
  static Result<std::unique_ptr<Folder>> Make();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // A descriptor: as long as a process has it, no other watcher sweeps this folder. -1: there is
  // none, since the file system knows no locks.
  int lock() const { return held_.get(); }
  // Removes it while its processes go on: SIGKILL may follow.
  void Remove() const;
  // … and tells them that nobody reads any more.
  void Abandon() const;
  // Processes whose rank has become known.
  std::vector<std::unique_ptr<LocalProcess>> TakeNew();

 private:
  Folder(std::filesystem::path path, Fd held)
      : path_(std::move(path)), held_(std::move(held)), endings_(path_ / events::kEndingsFile) {}

  std::filesystem::path path_;
  Fd held_;
  stacks::SourceLines lines_;
  Endings endings_;
  std::set<std::string> known_;
  std::map<std::string, std::unique_ptr<SegmentReader>> waiting_;  // until MPI_Init is over
};

}  // namespace lockstep::watch::run
