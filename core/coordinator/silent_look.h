// A look that shows all ranks silent, with their stacks. Those take their time, so it counts once
// nothing is heard that came meanwhile.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/coordinator/coordinator.h"

namespace lockstep::coordinator {

class SilentLook {
 public:
  using Look = std::vector<RankEvidence>;

  void Set(Look look) { look_ = std::move(look); }
  std::optional<Look> Take() { return std::exchange(look_, std::nullopt); }
  // OnEvent decides with a timeout, and need not wait for it.
  bool pending() const { return look_.has_value(); }
  // Told of every event before it is handled. Whether the look counts; what makes it old drops it.
  bool OnEvent(EventKind kind) {
    if (IsNews(kind)) look_.reset();
    return pending() && kind == EventKind::kTimeout;
  }

 private:
  // A rank did something, or something was done to it. One more that is overdue is silent, too.
  static bool IsNews(EventKind kind) {
    return kind == EventKind::kMessage || kind == EventKind::kQuiet || kind == EventKind::kExited ||
           kind == EventKind::kSignalled || kind == EventKind::kStopped ||
           kind == EventKind::kContinued || kind == EventKind::kLost ||
           kind == EventKind::kTerminate;
  }

  std::optional<Look> look_;
};

}  // namespace lockstep::coordinator
