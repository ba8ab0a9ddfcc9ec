// The file: "PID STARTED\n", then the words of the command, each with a NUL behind it. It is
// renamed into its place, so a reader finds a whole one or none.
#include "watch/run/watcher_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <system_error>

#include "core/base/process_stat.h"

namespace lockstep::watch::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "watcher";

// A folder of another user could say anything.
bool IsOurs(const fs::path& folder) {
  struct stat facts;
  return lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
}

std::optional<WatcherFile> Read(const fs::path& folder) {
  std::ifstream file(folder / kName, std::ios::binary);
  WatcherFile watcher{folder, 0, {}};
  std::uint64_t started = 0;
  if (!(file >> watcher.pid >> started) || file.get() != '\n') return std::nullopt;
  std::string word;
  while (std::getline(file, word, '\0')) watcher.command.push_back(word);
  const std::optional<ProcessStat> stat = StatOf(watcher.pid);
  const bool alive = stat && stat->started == started && stat->state != 'Z' && stat->state != 'X';
  if (!alive) return std::nullopt;
  return watcher;
}

}  // namespace

std::vector<fs::path> FolderParents() {
  std::vector<fs::path> parents = {"/dev/shm"};
  const char* const chosen = std::getenv("TMPDIR");
  if (chosen != nullptr && *chosen != 0) parents.emplace_back(chosen);
  parents.emplace_back("/tmp");
  return parents;
}

void Publish(const fs::path& folder, const std::vector<std::string>& command) {
  const std::optional<ProcessStat> mine = StatOf(getpid());
  if (!mine) return;
  const fs::path early = folder / "watcher.new";
  {
    std::ofstream file(early, std::ios::binary);
    file << getpid() << ' ' << mine->started << '\n';
    for (const std::string& word : command) file << word << '\0';
    if (!file.flush()) return;
  }
  std::error_code error;
  fs::rename(early, folder / kName, error);
}

std::vector<fs::path> FoldersOfWatchers() {
  std::vector<fs::path> found;
  std::vector<fs::path> parents = FolderParents();
  std::ranges::sort(parents);
  parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
  for (const fs::path& parent : parents) {
    std::error_code error;
    fs::directory_iterator entries(parent, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
      const fs::path& path = entries->path();
      if (path.filename().string().starts_with(kFolderPrefix) && IsOurs(path)) {
        found.push_back(path);
      }
    }
  }
  return found;
}

std::vector<WatcherFile> LiveWatchers() {
  std::vector<WatcherFile> found;
  for (const fs::path& folder : FoldersOfWatchers()) {
    if (std::optional<WatcherFile> watcher = Read(folder)) found.push_back(std::move(*watcher));
  }
  std::ranges::sort(found, {}, &WatcherFile::pid);
  return found;
}

}  // namespace lockstep::watch::run
