// The samples of a case and their parts: plain columns of iterations x ranks, with scales on both
// axes.
#pragma once

#include <hdf5.h>

#include <string>

#include "core/hdf5/handle.h"
#include "results/store/run.h"

namespace lockstep::results::store {

// `path` of the case: "/cases/<n>". Makes its groups "samples" and, if it has parts, "parts".
void WriteSamples(hid_t file, const std::string& path, const CaseRecord& record,
                  hdf5::HdfError& error);
Samples ReadSamples(hid_t file, const std::string& path, hdf5::HdfError& error);
// Fills the values of the parts of a case whose samples and parts' names were read.
void ReadPartValues(hid_t file, const std::string& path, CaseRecord& record, hdf5::HdfError& error);

}  // namespace lockstep::results::store
