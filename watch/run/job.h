// The ranks of one MPI job: their segments, the judge, and the two looks that prove a standstill.
#ifndef LOCKSTEP_WATCH_RUN_JOB_H_
#define LOCKSTEP_WATCH_RUN_JOB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "watch/judge/judge.h"
#include "watch/run/segment_reader.h"
#include "watch/run/source_lines.h"

namespace lockstep::watch::run {

class Job {
 public:
  Job(int size, SourceLines& lines, judge::Options options);

  bool Has(int rank) const { return readers_.count(rank) > 0; }
  void Add(int rank, std::unique_ptr<SegmentReader> reader);
  // Reads what is new; true when there was something.
  bool Drain();
  // Who ended, who is stopped. `over`: the launcher is gone, so every process is.
  void LookAtProcesses(bool over);
  // True when ranks were just proved to be stuck.
  bool LookForStandstill();
  // Once no rank has called anything for so long: what NCCL's members have not answered. 0: never.
  void LookForSilence(int seconds);
  void Over();
  void EndsAreNoNews() { judge_.EndsAreNoNews(); }
  std::vector<judge::Finding> Tell() { return judge_.Tell(); }
  std::vector<pid_t> Processes() const;
  std::uint64_t events() const { return events_; }
  int size() const { return size_; }
  bool complete() const { return complete_ && !judge_.history().smaller_groups; }

 private:
  struct Look {
    std::int64_t at_ns = 0;
    std::vector<std::uint64_t> read;  // of the stuck ranks
    std::vector<std::uint64_t> ran_ns;
    std::vector<int> ranks;
    bool soft = false;
  };
  std::string At(int rank, std::uint64_t site);
  Look LookNow(const judge::StuckRanks& stuck) const;
  bool Confirms(const Look& second) const;
  // Whether the main threads of stuck ranks, whose other threads call, are in the library, too.
  bool MainThreadsWait(const Look& second);

  int size_;
  SourceLines& lines_;
  judge::Judge judge_;
  std::map<int, std::unique_ptr<SegmentReader>> readers_;
  std::map<int, int> strange_;  // looks in a row that found the process stopped or gone
  Look first_;
  std::uint64_t events_ = 0;
  std::int64_t last_event_ns_ = 0;
  std::int64_t no_stacks_until_ns_ = 0;
  bool hung_ = false;
  std::uint64_t silent_since_ = 0;  // events, when the silence was told
  bool complete_ = true;
};

}  // namespace lockstep::watch::run

#endif  // LOCKSTEP_WATCH_RUN_JOB_H_
