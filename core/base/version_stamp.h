// What core/base/BUILD generates: from the file VERSION, and with --config=stamped from git.
#pragma once

namespace lockstep {

extern const char* const kVersionNumber;
extern const char* const kVersionCommit;
extern const bool kVersionModified;

}  // namespace lockstep
