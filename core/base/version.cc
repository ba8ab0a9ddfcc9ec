#include "core/base/version.h"

#include "core/base/version_stamp.h"

namespace lockstep {

Version ThisVersion() { return {kVersionNumber, kVersionCommit, kVersionModified}; }

std::string TextOf(const Version& version) {
  if (version.commit.empty()) return version.number;
  return version.number + " (" + version.commit + (version.modified ? ", modified)" : ")");
}

std::string ThisVersionText() { return TextOf(ThisVersion()); }

}  // namespace lockstep
