// Whole datasets written and read at once, and the axes they are plotted on.
#ifndef LOCKSTEP_RESULTS_STORE_DATASETS_H_
#define LOCKSTEP_RESULTS_STORE_DATASETS_H_

#include <hdf5.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/hdf5/handle.h"

namespace lockstep {

struct Dataset {
  std::string path;  // absolute; its groups exist
  std::vector<std::size_t> dims;
  bool compress = false;  // otherwise contiguous, which is fastest
};

// Creates and fills it; the handle stays open for attributes and scales.
Handle WriteDataset(hid_t file, const Dataset& dataset, hid_t file_type, hid_t memory_type,
                    const void* data, Trouble& trouble);

struct StoredDataset {
  Handle id;
  Handle type;
  std::vector<std::size_t> dims;
};

// Opens it and checks that it has `rank` dimensions and is not larger than its file can hold.
StoredDataset OpenDataset(hid_t file, const std::string& path, int rank, Trouble& trouble);
void ReadDataset(const StoredDataset& stored, const std::string& path, hid_t memory_type,
                 void* data, Trouble& trouble);

// Whether there is an object of this path, whose groups exist.
bool Exists(hid_t file, const std::string& path);
Handle CreateGroup(hid_t file, const std::string& path, Trouble& trouble);
Handle OpenGroup(hid_t file, const std::string& path, Trouble& trouble);

}  // namespace lockstep

#endif  // LOCKSTEP_RESULTS_STORE_DATASETS_H_
