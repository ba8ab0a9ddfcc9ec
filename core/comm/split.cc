#include "core/comm/split.h"

#include <sstream>
#include <utility>

#include "fmt/format.h"

namespace lockstep::comm {

Result<SplitGroup> AgreeOnGroup(Meeting& meeting, const std::string& prefix, int rank, int size,
                                int color, int key, Deadline deadline) {
  const auto key_of = [&](int r) { return fmt::format("{}/split/{}", prefix, r); };
  LOCKSTEP_RETURN_IF_ERROR(meeting.Put(key_of(rank), fmt::format("{} {}", color, key)));
  SplitGroup group;
  group.prefix = fmt::format("{}/color/{}", prefix, color);
  int before = 0;
  for (int r = 0; r < size; ++r) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, meeting.Get(key_of(r), deadline));
    int its_color = 0;
    int its_key = 0;
    if (!(std::istringstream(text) >> its_color >> its_key)) {
      return SystemFailed("split: rank {} left '{}' at the meeting", r, text);
    }
    if (its_color != color) continue;
    ++group.size;
    if (std::pair(its_key, r) < std::pair(key, rank)) ++before;
  }
  if (color >= 0) group.rank = before;
  return group;
}

}  // namespace lockstep::comm
