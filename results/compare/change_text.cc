#include "results/compare/change_text.h"

#include <cmath>

namespace lockstep::results::compare {

std::string ChangeText(double ratio, double half_width) {
  if (!std::isfinite(ratio) || ratio <= -1) return "?";
  const double finest = HalfWidthOfStep(std::abs(ratio) < 0.995 ? 0.1 : 1);
  return FormatChange(100 * ratio, std::fmax(100 * half_width, finest));
}

}  // namespace lockstep::results::compare
