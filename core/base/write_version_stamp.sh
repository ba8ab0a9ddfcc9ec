#!/bin/sh
# write_version_stamp.sh VERSION [STATUS]: the definitions of version_stamp.h, on standard output.
# STATUS holds the lines of scripts/workspace_status; without it no commit is known.
set -eu
number="$(cat "$1")"
commit=""
modified="false"
if [ $# -gt 1 ]; then
  commit="$(sed -n 's/^STABLE_LOCKSTEP_COMMIT //p' "$2")"
  modified="$(sed -n 's/^STABLE_LOCKSTEP_MODIFIED //p' "$2")"
fi
cat <<END
#include "core/base/version_stamp.h"

namespace lockstep {

const char* const kVersionNumber = "$number";
const char* const kVersionCommit = "$commit";
const bool kVersionModified = ${modified:-false};

}  // namespace lockstep
END
