// Journal events as a table: the 64 bytes of an event, column by column.
#ifndef LOCKSTEP_RESULTS_STORE_EVENTS_H_
#define LOCKSTEP_RESULTS_STORE_EVENTS_H_

#include <hdf5.h>

#include <string>
#include <vector>

#include "core/hdf5/handle.h"
#include "core/journal/event.h"

namespace lockstep {

// Returns the dataset, open for attributes.
Handle WriteEvents(hid_t file, const std::string& path, const std::vector<JournalEvent>& events,
                   Trouble& trouble);
std::vector<JournalEvent> ReadEvents(hid_t file, const std::string& path, Trouble& trouble);

}  // namespace lockstep

#endif  // LOCKSTEP_RESULTS_STORE_EVENTS_H_
