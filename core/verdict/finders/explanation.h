// Why it came to a general finding. An explanation registers itself in its own file, so that one
// more is a file of this folder and no line elsewhere.
#pragma once

#include <optional>
#include <vector>

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

class Explanation {
 public:
  // The specific finding, if the evidence shows it. `general` is the first finding; `mismatches`
  // are those that come before it or hold ranks.
  using Find = std::optional<Finding> (*)(const Situation& situation,
                                          const std::vector<Mismatch>& mismatches,
                                          const Finding& general);

  // For an object of static storage duration, which is not const: it becomes part of a list.
  // Explanations are tried in the order of the table of causes; `first` is the first cause that
  // this one may name.
  Explanation(Cause first, Find find);
  Explanation(const Explanation&) = delete;
  Explanation& operator=(const Explanation&) = delete;

  // That of the first one that finds something.
  static std::optional<Finding> Of(const Situation& situation,
                                   const std::vector<Mismatch>& mismatches, const Finding& general);

 private:
  Cause first_;
  Find find_;
  Explanation* next_ = nullptr;
};

}  // namespace lockstep::verdict::finders
