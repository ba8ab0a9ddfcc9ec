#include "core/verdict/finders/explanation.h"

namespace lockstep::verdict::finders {
namespace {

// In order. Set before any object of the other files is made.
constinit Explanation* first_explanation = nullptr;

}  // namespace

Explanation::Explanation(Cause first, Find find) : first_(first), find_(find) {
  Explanation** place = &first_explanation;
  while (*place != nullptr && (*place)->first_ < first_) place = &(*place)->next_;
  next_ = *place;
  *place = this;
}

std::optional<Finding> Explanation::Of(const Situation& situation,
                                       const std::vector<Mismatch>& mismatches,
                                       const Finding& general) {
  for (const Explanation* one = first_explanation; one != nullptr; one = one->next_) {
    if (std::optional<Finding> found = one->find_(situation, mismatches, general)) return found;
  }
  return std::nullopt;
}

}  // namespace lockstep::verdict::finders
