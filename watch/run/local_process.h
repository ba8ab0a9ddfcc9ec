// The processes of this host that write into a watcher's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "watch/events/event.h"
#include "watch/events/segment.h"
#include "watch/run/process.h"
#include "watch/run/segment_reader.h"
#include "watch/run/stacks/source_lines.h"

namespace lockstep::watch::run {

// Whom processes of the command told to end, as they wrote down before they did.
class Endings {
 public:
  explicit Endings(std::filesystem::path path) : path_(std::move(path)) {}
  // When that process was first told, in ticks; 0: it was not, as far as is known.
  std::uint64_t FirstOf(const events::Header& process);

 private:
  void ReadNew();

  std::filesystem::path path_;
  Fd file_;
  std::vector<events::Ending> read_;
};

class LocalProcess : public Process {
 public:
  LocalProcess(std::unique_ptr<SegmentReader> reader, stacks::SourceLines& lines, Endings& endings);

  std::uint64_t Drain(std::uint64_t most, const Take& take) override;
  std::uint64_t read() const override { return reader_->read(); }
  std::uint64_t read_from_ring() const override { return reader_->places(); }
  events::Cycle Coming() override { return reader_->Coming(); }
  void Pass(std::uint64_t calls) override {
    newest_ = {};
    reader_->Pass(calls);
  }
  ProcessFacts Look(bool over) override;
  bool WentOn() override;
  std::string Line(std::uint64_t site) override;
  stacks::PythonStack Python() override;
  std::string Stacks() override;
  void Kill() override;
  void Forget() override;
  std::int64_t started_ns() const override { return started_ns_; }
  pid_t pid() const override { return reader_->pid(); }
  int end_fd() const override { return end_.get(); }

 private:
  // By now for good it is another one's number, or of another host's kind (a container): 0.
  pid_t OwnPid() const;
  void NoteCalls(std::span<const events::Event> some);
  std::vector<CallerFacts> Callers(const ProcessFacts& main) const;
  // Its main thread is in the call of this site now, and nothing came since.
  bool MainThreadIsAt(std::uint64_t site) const;

  std::unique_ptr<SegmentReader> reader_;
  stacks::SourceLines& lines_;
  Endings& endings_;
  std::int64_t started_ns_;
  Fd end_;
  std::uint64_t begun_when_asked_ = 0;   // by WentOn
  std::vector<std::uint16_t> in_calls_;  // threads
  events::Event newest_;                 // of those that were read; kNothing: not known
};

}  // namespace lockstep::watch::run
