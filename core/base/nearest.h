// What somebody who misspelt a name probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// The name with the smallest edit distance (Levenshtein) to `text`, the first of equals; empty when
// more than half of it would have to change.
std::string_view NearestName(std::string_view text, std::span<const std::string_view> names);

// "did you mean 'resnet50'? ", or nothing when no name is near.
std::string NearestHint(std::string_view text, std::span<const std::string_view> names);

}  // namespace lockstep
