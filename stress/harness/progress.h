// One line that is rewritten on a terminal; nothing in a pipe or a file.
#ifndef LOCKSTEP_STRESS_HARNESS_PROGRESS_H_
#define LOCKSTEP_STRESS_HARNESS_PROGRESS_H_

#include <cstddef>
#include <string>

namespace lockstep::stress::harness {

class StressProgress {
 public:
  explicit StressProgress(bool wanted);
  ~StressProgress();
  StressProgress(const StressProgress&) = delete;
  StressProgress& operator=(const StressProgress&) = delete;

  void Show(std::size_t done, std::size_t cases, const std::string& label);

 private:
  bool on_terminal_;
};

}  // namespace lockstep::stress::harness

#endif  // LOCKSTEP_STRESS_HARNESS_PROGRESS_H_
