// The links of a run: /links, which only runs have that measured them.
#pragma once

#include <hdf5.h>

#include "core/hdf5/handle.h"
#include "results/store/run.h"

namespace lockstep::results::store {

// The pairs as a table, and the same as matrices of ranks x ranks for those who plot.
void WriteLinks(hid_t file, const Run& run, hdf5::HdfError& error);
void ReadLinks(hid_t file, Run& run, hdf5::HdfError& error);

}  // namespace lockstep::results::store
