// The samples of a case: plain columns of iterations x ranks, with scales on both axes.
#ifndef LOCKSTEP_RESULTS_STORE_SAMPLES_H_
#define LOCKSTEP_RESULTS_STORE_SAMPLES_H_

#include <hdf5.h>

#include <string>

#include "results/store/handle.h"
#include "results/store/run.h"

namespace lockstep {

// `path` of the group to make: "/cases/<n>/samples".
void WriteSamples(hid_t file, const std::string& path, const Samples& samples, Trouble& trouble);
Samples ReadSamples(hid_t file, const std::string& path, Trouble& trouble);

}  // namespace lockstep

#endif  // LOCKSTEP_RESULTS_STORE_SAMPLES_H_
