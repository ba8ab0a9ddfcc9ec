// Whole datasets written and read at once, and the axes they are plotted on.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/hdf5/handle.h"

namespace lockstep::results::store {

struct Dataset {
  std::string path;  // absolute; its groups exist
  std::vector<std::size_t> dims;
  bool compress = false;  // otherwise contiguous, which is fastest
};

// Creates and fills it; the handle stays open for attributes and scales.
hdf5::Handle WriteDataset(hdf5::File& file, const Dataset& dataset, hid_t file_type,
                          hid_t memory_type, const void* data);

struct StoredDataset {
  hdf5::Handle id;
  hdf5::Handle type;
  std::vector<std::size_t> dims;
};

// Opens it and checks that it has `rank` dimensions and is not larger than its file can hold.
StoredDataset OpenDataset(hdf5::File& file, const std::string& path, int rank);
void ReadDataset(hdf5::File& file, const StoredDataset& stored, const std::string& path,
                 hid_t memory_type, void* data);

// Whether there is an object of this path, whose groups exist.
bool Exists(hdf5::File& file, const std::string& path);
hdf5::Handle CreateGroup(hdf5::File& file, const std::string& path);
hdf5::Handle OpenGroup(hdf5::File& file, const std::string& path);

}  // namespace lockstep::results::store
