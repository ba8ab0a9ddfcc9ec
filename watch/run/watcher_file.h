// How `lockstep status` finds a watcher: a file in the watcher's folder says which process it is
// and what it runs. A watcher that was killed may leave its folder; pid and start time tell.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::watch::run {

struct WatcherFile {
  std::filesystem::path folder;
  pid_t pid = 0;
  std::vector<std::string> command;
};

// The folders of watchers lie in these, first come first. Their names begin with kFolderPrefix.
inline constexpr const char* kFolderPrefix = "lockstep-watch-";
std::vector<std::filesystem::path> FolderParents();

// Those of this user.
std::vector<std::filesystem::path> FoldersOfWatchers();

// Says that this process watches `command`, in its folder. Where that fails, nobody finds it.
void Publish(const std::filesystem::path& folder, const std::vector<std::string>& command);

// The watchers of this user that are alive, by their pid.
std::vector<WatcherFile> LiveWatchers();

}  // namespace lockstep::watch::run
