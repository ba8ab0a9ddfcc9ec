// Opens a dataset that may be damaged: each size is checked against the file before memory is
// taken. Samples are verified by checksum when they are read, not when the file is opened.
#include <hdf5.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/hdf5/handle.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::datasets::shards {
namespace {

Status Unreadable(const std::string& path, std::string_view what) {
  return InvalidInput("{}: {}; name a file that `lockstep make-dataset` wrote, or make it again",
                      path, what);
}

void GetNumber(hdf5::File& file, const char* name, hid_t type, void* value) {
  const hdf5::Handle attribute(H5Aopen(file.id, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.ok() || H5Aread(attribute.get(), type, value) < 0) {
    file.Note("its attribute {} is missing", name);
  }
}

std::string GetText(hdf5::File& file, const char* name) {
  const hdf5::Handle attribute(H5Aopen(file.id, name, H5P_DEFAULT), H5Aclose);
  const hdf5::Handle type(attribute.ok() ? H5Aget_type(attribute.get()) : H5I_INVALID_HID,
                          H5Tclose);
  const bool fixed = type.ok() && H5Tget_class(type.get()) == H5T_STRING &&
                     H5Tis_variable_str(type.get()) == 0 && H5Tget_size(type.get()) < 100;
  std::string text(fixed ? H5Tget_size(type.get()) : 0, '\0');
  if (!fixed || H5Aread(attribute.get(), type.get(), text.data()) < 0) {
    file.Note("its attribute {} is missing", name);
  }
  return text;
}

hdf5::Handle OpenColumn(hdf5::File& file, const char* name, std::uint64_t size) {
  hdf5::Handle column(H5Dopen2(file.id, name, H5P_DEFAULT), H5Dclose);
  const hdf5::Handle space(column.ok() ? H5Dget_space(column.get()) : H5I_INVALID_HID, H5Sclose);
  const bool fits = space.ok() && H5Sget_simple_extent_ndims(space.get()) == 1 &&
                    H5Sget_simple_extent_npoints(space.get()) == static_cast<hssize_t>(size);
  if (!fits) file.Note("/{} is missing or has not {} elements", name, size);
  return column;
}

std::vector<std::uint64_t> ReadColumn(hdf5::File& file, const char* name, std::uint64_t size) {
  const hdf5::Handle column = OpenColumn(file, name, size);
  std::vector<std::uint64_t> values;
  // What a damaged header claims must not be allocated before the file was seen to hold it.
  if (!file.ok() || H5Dget_storage_size(column.get()) != size * 8) {
    file.Note("/{} is incomplete", name);
    return values;
  }
  values.resize(size);
  if (H5Dread(column.get(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    file.Note("/{} cannot be read", name);
  }
  return values;
}

DatasetSpec ReadSpec(hdf5::File& file) {
  DatasetSpec spec;
  int schema = 0;
  if (GetText(file, "format") != "Lockstep dataset") {
    file.Note("an HDF5 file, but no dataset of Lockstep");
  }
  GetNumber(file, "schema", H5T_NATIVE_INT, &schema);
  if (schema > kShardSchema) file.Note("of schema {}, newer than ours", schema);
  const Result<DatasetKind> kind = ParseDatasetKind("kind", GetText(file, "kind"));
  if (kind.ok())
    spec.kind = *kind;
  else
    file.Note("its kind is unknown");
  GetNumber(file, "samples", H5T_NATIVE_INT64, &spec.samples);
  GetNumber(file, "min_bytes", H5T_NATIVE_INT64, &spec.min_bytes);
  GetNumber(file, "max_bytes", H5T_NATIVE_INT64, &spec.max_bytes);
  GetNumber(file, "seed", H5T_NATIVE_UINT64, &spec.seed);
  if (file.ok() && !Validate(spec).ok()) file.Note("its attributes contradict each other");
  return spec;
}

bool Ascends(const std::vector<std::uint64_t>& offsets) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i] > offsets[i + 1] || offsets[i + 1] - offsets[i] > kMostBytes) return false;
  }
  return !offsets.empty() && offsets.front() == 0;
}

}  // namespace

struct ShardFile::Open_ {
  hdf5::Handle file;
  hdf5::Handle data;
};

ShardFile::ShardFile() = default;
ShardFile::ShardFile(ShardFile&&) noexcept = default;
ShardFile& ShardFile::operator=(ShardFile&&) noexcept = default;
ShardFile::~ShardFile() = default;

Result<ShardFile> ShardFile::Open(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) {
    return Unreadable(path, code ? code.message() : "no regular file");
  }
  const hdf5::Silence silence;
  ShardFile shard;
  shard.path_ = path;
  shard.open_ = std::make_unique<Open_>();
  shard.open_->file = hdf5::Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!shard.open_->file.ok()) return Unreadable(path, "not a whole HDF5 file, or not readable");
  hdf5::File file(shard.open_->file.get());
  shard.spec_ = ReadSpec(file);
  if (!file.ok()) return Unreadable(path, file.text());
  const auto samples = static_cast<std::uint64_t>(shard.spec_.samples);
  shard.offsets_ = ReadColumn(file, "offset", samples + 1);
  shard.checksums_ = ReadColumn(file, "checksum", samples);
  if (file.ok() && !Ascends(shard.offsets_)) file.Note("/offset is damaged");
  if (!file.ok()) return Unreadable(path, file.text());
  shard.open_->data = OpenColumn(file, "data", shard.offsets_.back());
  if (!file.ok()) return Unreadable(path, file.text());
  return shard;
}

std::int64_t ShardFile::bytes(std::int64_t index) const {
  const auto at = static_cast<std::size_t>(index);
  return static_cast<std::int64_t>(offsets_[at + 1] - offsets_[at]);
}

std::uint64_t ShardFile::checksum(std::int64_t index) const {
  return checksums_[static_cast<std::size_t>(index)];
}

Status ShardFile::Read(std::int64_t index, std::vector<std::byte>& bytes) const {
  const hsize_t size = static_cast<hsize_t>(this->bytes(index));
  const hsize_t start = offsets_[static_cast<std::size_t>(index)];
  bytes.resize(size);
  const hdf5::Silence silence;
  const hdf5::Handle space(H5Dget_space(open_->data.get()), H5Sclose);
  const hdf5::Handle memory(H5Screate_simple(1, &size, nullptr), H5Sclose);
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &size, nullptr);
  if (H5Dread(open_->data.get(), H5T_NATIVE_UINT8, memory.get(), space.get(), H5P_DEFAULT,
              bytes.data()) < 0) {
    return EnvironmentError("{}: sample {} cannot be read; check the disk, or make the file again",
                            path_, index);
  }
  return OkStatus();
}

Status ShardFile::Verify(std::int64_t index, std::span<const std::byte> bytes) const {
  const std::uint64_t found = SampleChecksum(bytes);
  if (found == checksum(index)) return OkStatus();
  return InvalidInput(
      "{}: sample {} is corrupt (checksum {:016x}, written with {:016x}); make the file again or "
      "restore it from a good copy",
      path_, index, found, checksum(index));
}

}  // namespace lockstep::datasets::shards
