// A file appears under its name complete or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "results/store/store.h"

namespace lockstep::results::store {

// Writes the parts one after the other to a file beside `name`, fsyncs, renames it to `name` and
// fsyncs the directory; makes missing parent directories. A link stays, and leads to what is new.
// On an error the temporary file is removed and nothing of the name has changed. A file size limit
// is an error, no signal.
Status WriteAtomically(const std::string& name,
                       const std::vector<std::span<const std::byte>>& parts, WriteRules rules = {});

// Of two processes that do this for one name one fails with EEXIST.
bool RenameToNew(const std::string& from, const std::string& to);

}  // namespace lockstep::results::store
