// Subcommands that are programs in Python: `lockstep` becomes them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace lockstep::cli {

// The path of the running `lockstep`.
Result<std::filesystem::path> ThisProgram();

// What belongs to it: `installed` below the prefix of the installed program, or `in_tree` among the
// data of its Bazel target.
Result<std::filesystem::path> FindData(const std::string& installed, const std::string& in_tree);

// Leaves this process to such a script. Returns only on an error.
Status ExecScript(const std::string& installed, const std::string& in_tree,
                  const std::vector<std::string>& arguments);

// The folder of the programs: beside this one, or the rooms of the build tree around it.
Result<std::filesystem::path> ProgramsFolder();

}  // namespace lockstep::cli
