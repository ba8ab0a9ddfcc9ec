// Where the file of a run goes while the run lasts: no result is lost to a full disk, and none of
// another run is overwritten. Of the same run (by its id) a process replaces what it wrote itself;
// what another one wrote, whose samples it may not have, it names apart.
#pragma once

#include <string>

#include "core/base/status.h"
#include "results/store/run.h"

namespace lockstep::results::store {

class RunFile {
 public:
  RunFile() = default;
  explicit RunFile(std::string path) : path_(std::move(path)) {}

  // Before anything is measured: whether a run can be written there, and no other was.
  Status Check() const;

  // What is known so far. Survives the end of all processes, not that of the machine. False: it is
  // not where it was asked to be, or an older state stands.
  bool Save(Run& run) { return Write(run, /*synced=*/false).ok(); }
  // All of it. An error says that it is not where it was asked to be: somewhere else, which the
  // message names (beside it, in $TMPDIR, in the current folder), or nowhere. Then the run's exit
  // code is that of the error, also in the file.
  Status Store(Run& run) { return Write(run, /*synced=*/true); }

  // From now on the run goes to another place, because this one may be that of others.
  void MoveTo(std::string path);

  bool saved() const { return saved_; }
  const std::string& path() const { return path_; }  // where it is, or would be
  // Where the coordinator's state of this run is now, which stood in our place; empty: none did.
  const std::string& older() const { return older_; }

 private:
  Status Write(Run& run, bool synced);
  void KeepApart(const std::string& id, const std::string& path);
  Status WriteElsewhere(Run& run, bool synced, const Status& refused);

  std::string path_;
  bool saved_ = false;  // the file at path_ is ours
  std::string older_;
  Status moved_;  // why it is not where it was asked to be
};

// What makes a run the same one when another process goes on with it: its id and its beginning.
std::string IdentityOf(const Run& run);
void Identify(const std::string& identity, Run& run);

}  // namespace lockstep::results::store
