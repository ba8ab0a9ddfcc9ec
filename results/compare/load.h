// Runs from the names that people give: files, directories, globs.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "results/compare/figures.h"

namespace lockstep::results::compare {

struct Loaded {
  std::vector<Launch> launches;
  std::vector<std::string> skipped;   // a line a file that could not be read, with the reason
  std::vector<std::string> repeated;  // likewise of a run that was read already
};

enum class Depth { kDirectory, kBelow };  // the .h5 files in a directory, or also those below it

// Run files, by name; hidden ones are being written and are left out. kInvalidInput: the directory
// cannot be listed, or has none.
Result<std::vector<std::string>> RunFilesIn(const std::string& directory, Depth depth);

// What one rank saved when its coordinator was lost (*-partial.h5): passed over and named in
// `skipped`; or, where the launch has no whole file, a launch without times.
enum class Lost { kSkipped, kWithoutTimes };

// Runs are read one after the other and only their figures are kept. A run that was read already is
// passed over; hidden files are not looked at. Errors: a name that is no file, no directory and
// matches nothing; no run at all.
Result<Loaded> LoadLaunches(const std::vector<std::string>& names, Depth depth,
                            Lost lost = Lost::kSkipped);

}  // namespace lockstep::results::compare
