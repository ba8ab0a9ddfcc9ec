// One line that is rewritten on a terminal; nothing in a pipe or a file.
#ifndef LOCKSTEP_BENCH_HARNESS_PROGRESS_H_
#define LOCKSTEP_BENCH_HARNESS_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::bench::harness {

class Progress {
 public:
  // Shows itself if a person looks at stderr: directly, or through a launcher that forwards it.
  explicit Progress(bool wanted);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // At most ten times a second, and only between rounds, when no rank measures.
  void Update(int repetition, std::size_t cases_done, std::size_t cases, double seconds_to_go);
  void Clear();
  // What a person should know at once, whether anyone looks or not: a line that stays.
  void Notice(const std::string& line);

 private:
  bool shown_ = false;
  bool on_terminal_;
  std::int64_t last_ns_ = 0;
};

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_PROGRESS_H_
