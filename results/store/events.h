// Journal events as a table: the 64 bytes of an event, column by column.
#pragma once

#include <hdf5.h>

#include <string>
#include <vector>

#include "core/hdf5/handle.h"
#include "core/journal/event.h"

namespace lockstep::results::store {

// Returns the dataset, open for attributes.
hdf5::Handle WriteEvents(hid_t file, const std::string& path,
                         const std::vector<journal::JournalEvent>& events, hdf5::HdfError& error);
std::vector<journal::JournalEvent> ReadEvents(hid_t file, const std::string& path,
                                              hdf5::HdfError& error);

}  // namespace lockstep::results::store
