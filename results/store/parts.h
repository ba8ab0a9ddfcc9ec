// The parts of a run's file that are no plain tables: samples, journals, links.
#pragma once

#include <hdf5.h>

#include <string>
#include <vector>

#include "core/hdf5/handle.h"
#include "core/journal/event.h"
#include "results/store/run.h"

namespace lockstep::results::store {

// The samples of a case and their parts: plain columns of iterations x ranks, with scales on both
// axes. `path` of the case: "/cases/<n>". Makes its groups "samples" and, if it has parts, "parts".
void WriteSamples(hdf5::File& file, const std::string& path, const CaseRecord& record);
Samples ReadSamples(hdf5::File& file, const std::string& path);
// Fills the values of the parts of a case whose samples and parts' names were read.
void ReadPartValues(hdf5::File& file, const std::string& path, CaseRecord& record);

// Journal events as a table: the 64 bytes of an event, column by column. Returns the dataset, open
// for attributes.
hdf5::Handle WriteEvents(hdf5::File& file, const std::string& path,
                         const std::vector<journal::JournalEvent>& events);
std::vector<journal::JournalEvent> ReadEvents(hdf5::File& file, const std::string& path);

// The links of a run, which only runs have that measured them: the pairs as a table, and the same
// as matrices of ranks x ranks for those who plot.
void WriteLinks(hdf5::File& file, const Run& run);
void ReadLinks(hdf5::File& file, Run& run);

}  // namespace lockstep::results::store
