// The processes of this host that write into a watcher's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "watch/run/process.h"
#include "watch/run/segment_reader.h"
#include "watch/run/stacks/source_lines.h"

namespace lockstep::watch::run {

class LocalProcess : public Process {
 public:
  LocalProcess(std::unique_ptr<SegmentReader> reader, stacks::SourceLines& lines);

  std::uint64_t Drain(std::uint64_t most, const Take& take) override;
  std::uint64_t read() const override { return reader_->read(); }
  ProcessFacts Look(bool over) override;
  std::string Line(std::uint64_t site) override;
  stacks::PythonStack Python() override;
  std::string Stacks() override;
  void Kill() override;
  pid_t pid() const override { return reader_->pid(); }
  int end_fd() const override { return end_.get(); }

 private:
  std::unique_ptr<SegmentReader> reader_;
  stacks::SourceLines& lines_;
  Fd end_;
};

// A new folder for segments; removed with its contents.
class Folder {
 public:
  static Result<std::unique_ptr<Folder>> Make();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Removes it while its processes go on: SIGKILL may follow.
  void Remove() const;
  // … and tells them that nobody reads any more.
  void Abandon() const;
  // Processes whose rank has become known.
  std::vector<std::unique_ptr<LocalProcess>> TakeNew();

 private:
  explicit Folder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  stacks::SourceLines lines_;
  std::set<std::string> known_;
  std::map<std::string, std::unique_ptr<SegmentReader>> waiting_;  // until MPI_Init is over
};

}  // namespace lockstep::watch::run
