// Where the manifests of models lie on this machine.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace lockstep::datasets {

// The path of a manifest. A text with '/' or ending in ".json" is a path and is returned as it is
// (it may not exist); anything else is the name of a model, NAME.json in a directory that is
// searched:
//   $LOCKSTEP_DATASETS                            the user's own
//   <directory of the binary>/../share/lockstep/manifests, …/lockstep/datasets/manifests
//                                                           installed
//   <binary>.runfiles, $RUNFILES_DIR, $TEST_SRCDIR            built by Bazel
//   datasets/manifests beside or above the binary             a source tree
// Errors (kInvalidInput): $LOCKSTEP_DATASETS is set and is not a directory; an unknown name, for
// which the nearest and all available ones are said.
Result<std::string> FindManifest(std::string_view name_or_path);

}  // namespace lockstep::datasets
