// One line that is rewritten on a terminal. A pipe or a file gets only what stays.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::session {

class ProgressLine {
 public:
  // Shows itself if a person looks at stderr: directly, or through a launcher that forwards it.
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const std::string& line);
  void ShowIfDue(const std::string& line);  // at most ten times a second
  // As Show, and where no terminal shows it a line that stays, behind `program`: for steps that
  // last seconds and are few.
  void ShowStep(const std::string& line, const std::string& program);
  void Clear();
  // A line that stays, unless nobody wants to see progress.
  void Announce(const std::string& line);
  // What a person should know at once, whether anyone looks or not: a line that stays.
  void Notice(const std::string& line);

 private:
  bool shown_ = false;
  bool wanted_;
  bool on_terminal_;
  std::int64_t last_ns_ = 0;
};

}  // namespace lockstep::session
