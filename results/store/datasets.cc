// Whole datasets with deflate, and the checks before one is read. A shape that its file cannot hold
// is refused before memory is taken, because headers may be damaged.
#include "results/store/datasets.h"

#include <algorithm>

namespace lockstep::results::store {
namespace {

// deflate's highest ratio (RFC 1951: 258 bytes from 2 bits): data larger than that times its
// storage is not in the file.
constexpr double kMaxExpansion = 1032;

hdf5::Handle CreationProperties(const Dataset& dataset, std::size_t row_bytes) {
  hdf5::Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
  if (!dataset.compress || H5Zfilter_avail(H5Z_FILTER_DEFLATE) <= 0) return properties;
  const std::size_t rows = std::max<std::size_t>(1, (std::size_t{1} << 20) / row_bytes);
  const hsize_t chunk = std::min(dataset.dims[0], rows);
  H5Pset_chunk(properties.get(), 1, &chunk);
  H5Pset_deflate(properties.get(), 1);
  return properties;
}

}  // namespace

hdf5::Handle WriteDataset(hdf5::File& file, const Dataset& dataset, hid_t file_type,
                          hid_t memory_type, const void* data) {
  if (!file.ok()) return hdf5::Handle();
  const std::vector<hsize_t> dims(dataset.dims.begin(), dataset.dims.end());
  const hdf5::Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                           H5Sclose);
  const hdf5::Handle properties = CreationProperties(dataset, H5Tget_size(file_type));
  hdf5::Handle id(H5Dcreate2(file.id, dataset.path.c_str(), file_type, space.get(), H5P_DEFAULT,
                             properties.get(), H5P_DEFAULT),
                  H5Dclose);
  const bool empty = std::find(dims.begin(), dims.end(), hsize_t{0}) != dims.end();
  if (!id.ok() ||
      (!empty && H5Dwrite(id.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)) {
    file.Note("{} refused", dataset.path);
  }
  return id;
}

StoredDataset OpenDataset(hdf5::File& file, const std::string& path, int rank) {
  StoredDataset stored;
  if (!file.ok()) return stored;
  stored.id = hdf5::Handle(H5Dopen2(file.id, path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!stored.id.ok()) {
    file.Note("{} is missing", path);
    return stored;
  }
  stored.type = hdf5::Handle(H5Dget_type(stored.id.get()), H5Tclose);
  const hdf5::Handle space(H5Dget_space(stored.id.get()), H5Sclose);
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  if (H5Sget_simple_extent_ndims(space.get()) != rank ||
      H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr) != rank) {
    file.Note("{} has not {} dimensions", path, rank);
    return stored;
  }
  stored.dims.assign(dims.begin(), dims.end());
  double bytes = static_cast<double>(H5Tget_size(stored.type.get()));
  for (const hsize_t dim : dims) bytes *= static_cast<double>(dim);
  if (bytes > kMaxExpansion * static_cast<double>(H5Dget_storage_size(stored.id.get()))) {
    file.Note("{} has less data than its shape says", path);
  }
  return stored;
}

void ReadDataset(hdf5::File& file, const StoredDataset& stored, const std::string& path,
                 hid_t memory_type, void* data) {
  const bool empty = std::find(stored.dims.begin(), stored.dims.end(), 0u) != stored.dims.end();
  if (!file.ok() || empty) return;
  if (H5Dread(stored.id.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) {
    file.Note("{} cannot be read", path);
  }
}

bool Exists(hdf5::File& file, const std::string& path) {
  return H5Lexists(file.id, path.c_str(), H5P_DEFAULT) > 0;
}

hdf5::Handle CreateGroup(hdf5::File& file, const std::string& path) {
  if (!file.ok()) return hdf5::Handle();
  hdf5::Handle group(H5Gcreate2(file.id, path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                     H5Gclose);
  if (!group.ok()) file.Note("{} refused", path);
  return group;
}

hdf5::Handle OpenGroup(hdf5::File& file, const std::string& path) {
  if (!file.ok()) return hdf5::Handle();
  hdf5::Handle group(H5Gopen2(file.id, path.c_str(), H5P_DEFAULT), H5Gclose);
  if (!group.ok()) file.Note("{} is missing", path);
  return group;
}

}  // namespace lockstep::results::store
