// One HDF5 file a run: results/schema.md documents every object in it.
#pragma once

#include <string>

#include "core/base/status.h"
#include "results/store/run.h"

namespace lockstep::results::store {

// "results/runs/20261121T104425Z-bench_allreduce-1a2b3c4d.h5" for the directory "results/runs".
std::string DefaultRunPath(const Run& run, const std::string& directory);

// Whether a run could be written there: the directory exists (or can be made) and is writable, and
// `path` is no directory. Asked before measuring, so that no result is lost to a typing mistake.
// Leaves nothing behind.
Status CheckWritable(const std::string& path);

struct WriteRules {
  bool replaces = true;  // an older file of the name; else that one is an error
  // Survives a machine that stops. Without it a file survives only the end of all processes, but
  // is written without a wait for the disk.
  bool synced = true;
};

// Makes missing directories, writes to a temporary name beside `path`, fsyncs, renames. On an error
// (disk full …) the temporary file is removed, an older file of the name is as it was, and the
// message names path, reason and remedy.
Status WriteRun(const Run& run, const std::string& path, WriteRules rules = {});

// The whole run; environment and floors sorted by name. Errors name the file and why: not HDF5,
// truncated, altered since it was written, not Lockstep's, of a newer schema, an object missing.
Result<Run> ReadRun(const std::string& path);

}  // namespace lockstep::results::store
