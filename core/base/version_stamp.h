// What core/base/BUILD generates: from the file VERSION, and with --config=stamped from git.
#ifndef LOCKSTEP_CORE_BASE_VERSION_STAMP_H_
#define LOCKSTEP_CORE_BASE_VERSION_STAMP_H_

namespace lockstep {

extern const char* const kVersionNumber;
extern const char* const kVersionCommit;
extern const bool kVersionModified;

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_BASE_VERSION_STAMP_H_
