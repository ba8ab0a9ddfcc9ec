// What is told of watched jobs: on stderr as soon as it is known, and in files.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/flight/diagnosis.h"
#include "watch/judge/finding.h"
#include "watch/run/jobs.h"
#include "watch/run/reporter.h"
#include "watch/run/watch.h"

namespace lockstep::watch::run {

class Teller {
 public:
  Teller(const WatchOptions& options, std::unique_ptr<Reporter> reporter)
      : options_(options), reporter_(std::move(reporter)) {}

  // What the job found since it was asked last. `stands`: its ranks were just proved to be stuck,
  // or are silent.
  void Tell(Job& job, bool stands);
  // What PyTorch's Flight Recorder shows, where nothing else was found. A suspicion again only
  // after another one.
  void TellFlight(const flight::FlightDiagnosis& diagnosis);
  // Nothing was told but what the Flight Recorder made suspect.
  bool WantsFlight() const { return findings_ == flight_suspicions_; }
  // Between looks: writes what was told, at once where ranks stand.
  void Save(const Jobs& jobs);
  // The launcher ends the launch, and SIGKILL may follow. Once.
  void LastWords(const Jobs& jobs);
  // A launch that is over, of which Summarize does not hear.
  void Count(const Job& job);
  // All is over.
  void Summarize(const Jobs& jobs, int code);
  void SaveAtEnd(const Jobs& jobs, int code);

 private:
  void Print(const judge::Finding& finding, const Job& job);
  // A line in the file that --findings names.
  void Note(std::string_view cause, bool proved, bool hangs, const std::string& text) const;
  void TellStanding(Job& job);
  void TellWhereabouts(const Jobs& jobs);
  void Store(const Jobs& jobs, int code, bool at_end);
  void SayOnce(const Status& problem);

  const WatchOptions& options_;
  std::unique_ptr<Reporter> reporter_;
  int findings_ = 0;
  int flight_suspicions_ = 0;   // of these
  std::string told_by_flight_;  // the newest headline
  int ranks_ = 0;  // of launches that are over, and their events
  std::uint64_t events_ = 0;
  bool complete_ = true;
  std::set<std::string> not_followed_;  // calls, by name
  bool unsaved_ = false;
  bool urgent_ = false;  // ranks stand: nothing is held up by writing
  bool ended_ = false;   // LastWords were said
  bool said_where_ = false;
  std::int64_t saved_ns_ = 0;
  std::string said_;  // a problem with the file
};

}  // namespace lockstep::watch::run
