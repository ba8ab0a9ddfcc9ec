// A run is written under the name that was asked for, else beside it, else in another folder. The
// first file is never one that was there before. Two launches may have been given one name; the
// second that is done finds it taken.
#include "results/store/run_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/base/check.h"
#include "core/base/version.h"
#include "results/store/atomic_file.h"
#include "results/store/partial_path.h"
#include "results/store/store.h"

namespace lockstep::results::store {
namespace {

namespace fs = std::filesystem;

// "night/node.h5" -> "node-1a2b3c4d.h5": no other run has it.
std::string OwnName(const fs::path& path, const std::string& id) {
  const std::string stem = path.extension() == ".h5" ? path.stem() : path.filename();
  return stem.ends_with(id) ? stem + ".h5" : fmt::format("{}-{}.h5", stem, id);
}

std::vector<std::string> OtherPlaces(const fs::path& path, const std::string& id) {
  const std::string name = OwnName(path, id);
  const char* const temporary = std::getenv("TMPDIR");
  std::error_code error;
  return {(path.parent_path() / name).string(),
          (fs::path(temporary == nullptr ? "/tmp" : temporary) / name).string(),
          (fs::current_path(error) / name).string()};
}

// A process before us may have begun the file.
bool IsOf(const std::string& id, const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  const Result<Run> there = ReadRun(path);
  return there.ok() && there->id == id;
}

}  // namespace

std::string DefaultRunPath(const Run& run, const std::string& directory) {
  // "2026-11-21T10:44:25Z" -> "20261121T104425Z"
  std::string time = run.started_at;
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  const std::string_view slash = directory.empty() || directory.back() == '/' ? "" : "/";
  return fmt::format("{}{}{}-{}-{}.h5", directory, slash, time, run.name, run.id);
}

std::string IdentityOf(const Run& run) { return run.id + " " + run.started_at; }

void Identify(const std::string& identity, Run& run) {
  const std::size_t space = identity.find(' ');
  LOCKSTEP_CHECK(space != std::string::npos, "the identity of a run");
  run.id = identity.substr(0, space);
  run.started_at = identity.substr(space + 1);
}

Status RunFile::Check() const {
  LOCKSTEP_RETURN_IF_ERROR(CheckWritable(path_));
  std::error_code error;
  if (!fs::exists(path_, error)) return OkStatus();
  return InvalidInput(
      "--output: {} exists, and a run is not overwritten; remove it, or choose another name",
      path_);
}

void RunFile::MoveTo(std::string path) {
  if (path == path_) return;
  path_ = std::move(path);
  saved_ = false;
}

// Where neither name is free it stays, and we go elsewhere.
void RunFile::KeepApart(const std::string& id, const std::string& path) {
  if (!IsOf(id, path)) return;
  const std::string apart = PartialPath(path, 0);
  for (const std::string& name : {apart, OwnName(apart, id)}) {
    const std::string to = fs::path(path).parent_path() / fs::path(name).filename();
    if (!RenameToNew(path, to)) continue;
    older_ = to;
    return;
  }
}

Status RunFile::Write(Run& run, bool synced) {
  run.lockstep = ThisVersion();
  if (!moved_.ok()) run.exit_code = static_cast<int>(ExitCodeOf(moved_.code()));
  if (!saved_) KeepApart(run.id, path_);
  const Status written = WriteRun(run, path_, {.replaces = saved_, .synced = synced});
  if (!written.ok()) return WriteElsewhere(run, synced, written);
  saved_ = true;
  return moved_;
}

Status RunFile::WriteElsewhere(Run& run, bool synced, const Status& refused) {
  run.exit_code = static_cast<int>(ExitCodeOf(refused.code()));
  const std::vector<std::string> places = OtherPlaces(path_, run.id);
  for (const std::string& place : places) {
    if (place == path_) continue;
    KeepApart(run.id, place);
    if (!WriteRun(run, place, {.synced = synced}).ok()) continue;
    if (saved_) unlink(path_.c_str());  // an older state of this run
    moved_ = Status(refused.code(),
                    fmt::format("{}. The run is in {} instead", refused.message(), place));
    path_ = place;
    saved_ = true;
    return moved_;
  }
  const std::string older = saved_ ? fmt::format("; an older state of it is in {}", path_) : "";
  return Status(refused.code(), fmt::format("{}. Nor could it be written to {}{}",
                                            refused.message(), fmt::join(places, ", "), older));
}

}  // namespace lockstep::results::store
