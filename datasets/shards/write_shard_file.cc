// Writes a dataset beside its place and renames it, so that nobody sees half a file. Space is
// reserved first, because HDF5 1.10 crashes at exit after a failed write. A file size limit is an
// error here, not a signal.
#include <fcntl.h>
#include <fmt/core.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/base/units.h"
#include "core/hdf5/handle.h"
#include "datasets/shards/shard_file.h"

namespace lockstep::datasets::shards {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPieceBytes = 4 << 20;

Status CannotWrite(const std::string& path, std::string_view why) {
  return EnvironmentError("{}: cannot be written ({}); free space there or choose another place",
                          path, why);
}

// The temporary file, gone again unless it was renamed. While it is written, a file size limit is
// an error of a call and no signal that ends the process.
class Temporary {
 public:
  explicit Temporary(const fs::path& path)
      : path_((path.has_parent_path() ? path.parent_path() : fs::path(".")) /
              fmt::format(".{}.tmp-{}", path.filename().string().substr(0, 200), getpid())) {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignore, &before_);
    unlink(path_.c_str());  // of an earlier process with this id
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!renamed_) unlink(path_.c_str());
    sigaction(SIGXFSZ, &before_, nullptr);
  }
  const fs::path& path() const { return path_; }
  // Makes it that long and says with errno whether that can be: a write that fails for want of
  // space would leave HDF5 (1.10) in a state in which it crashes when the process ends.
  bool Reserve(std::uint64_t bytes) {
    const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    close(fd);
    errno = error;
    return error == 0;
  }
  // False with errno.
  bool Publish(const fs::path& path) {
    if (!Sync(path_, O_RDONLY) || rename(path_.c_str(), path.c_str()) != 0) return false;
    renamed_ = true;
    // Some file systems have no fsync of directories; there the rename has to do.
    return Sync(path_.parent_path(), O_RDONLY | O_DIRECTORY) || errno == EINVAL;
  }

 private:
  static bool Sync(const fs::path& path, int flags) {
    const int fd = open(path.c_str(), flags | O_CLOEXEC);
    if (fd < 0) return false;
    const bool synced = fsync(fd) == 0;
    const int error = errno;
    close(fd);
    errno = error;
    return synced;
  }
  fs::path path_;
  struct sigaction before_ {};
  bool renamed_ = false;
};

void PutNumber(hdf5::File& file, const char* name, hid_t type, const void* value) {
  const hdf5::Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const hdf5::Handle attribute(
      H5Acreate2(file.id, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute.ok() || H5Awrite(attribute.get(), type, value) < 0) file.Note(name);
}

void PutText(hdf5::File& file, const char* name, std::string_view text) {
  const hdf5::Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), text.size());
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  PutNumber(file, name, type.get(), std::string(text).data());
}

hdf5::Handle CreateColumn(hdf5::File& file, const char* name, hid_t type, hsize_t size) {
  const hdf5::Handle space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  hdf5::Handle column(
      H5Dcreate2(file.id, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose);
  if (!column.ok()) file.Note(name);
  return column;
}

void WriteColumn(hdf5::File& file, const char* name, const std::vector<std::uint64_t>& values) {
  const hdf5::Handle column = CreateColumn(file, name, H5T_STD_U64LE, values.size());
  const bool written = column.ok() && H5Dwrite(column.get(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL,
                                               H5P_DEFAULT, values.data()) >= 0;
  if (!written) file.Note(name);
}

// Appends pieces of bytes to a dataset.
class DataColumn {
 public:
  DataColumn(hdf5::File& file, hsize_t bytes)
      : column_(CreateColumn(file, "data", H5T_STD_U8LE, bytes)), file_(file) {}
  void Append(const std::vector<std::byte>& bytes) {
    const hsize_t size = bytes.size();
    if (!file_.ok() || size == 0) return;
    const hdf5::Handle space(H5Dget_space(column_.get()), H5Sclose);
    const hdf5::Handle memory(H5Screate_simple(1, &size, nullptr), H5Sclose);
    H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &at_, nullptr, &size, nullptr);
    if (H5Dwrite(column_.get(), H5T_NATIVE_UINT8, memory.get(), space.get(), H5P_DEFAULT,
                 bytes.data()) < 0) {
      file_.Note(std::strerror(errno));
    }
    at_ += size;
  }

 private:
  hdf5::Handle column_;
  hdf5::File& file_;
  hsize_t at_ = 0;
};

void WriteSamples(hdf5::File& file, const DatasetSpec& spec,
                  const std::vector<std::uint64_t>& offsets) {
  DataColumn data(file, offsets.back());
  std::vector<std::uint64_t> checksums;
  std::vector<std::byte> piece;
  for (std::int64_t i = 0; i < spec.samples && file.ok(); ++i) {
    const std::size_t begin = piece.size();
    piece.resize(begin + static_cast<std::size_t>(BytesOfSample(spec, i)));
    const auto sample = std::span(piece).subspan(begin);
    FillSample(spec, i, sample);
    checksums.push_back(SampleChecksum(sample));
    if (static_cast<std::int64_t>(piece.size()) < kPieceBytes) continue;
    data.Append(piece);
    piece.clear();
  }
  data.Append(piece);
  WriteColumn(file, "checksum", checksums);
  WriteColumn(file, "offset", offsets);
}

void WriteSpec(hdf5::File& file, const DatasetSpec& spec) {
  PutText(file, "format", "Lockstep dataset");
  PutNumber(file, "schema", H5T_NATIVE_INT, &kShardSchema);
  PutText(file, "kind", NameOf(spec.kind));
  PutNumber(file, "samples", H5T_NATIVE_INT64, &spec.samples);
  PutNumber(file, "min_bytes", H5T_NATIVE_INT64, &spec.min_bytes);
  PutNumber(file, "max_bytes", H5T_NATIVE_INT64, &spec.max_bytes);
  PutNumber(file, "seed", H5T_NATIVE_UINT64, &spec.seed);
}

Status CheckPlace(const std::string& path) {
  struct stat facts {};
  const bool there = stat(path.c_str(), &facts) == 0;
  if (path.empty() || path.back() == '/' || (there && !S_ISREG(facts.st_mode))) {
    return InvalidInput("'{}' is no file name; name a file that ends in .h5", path);
  }
  return OkStatus();
}

}  // namespace

Result<std::int64_t> MakeShardFile(const std::string& path, const DatasetSpec& spec) {
  LOCKSTEP_RETURN_IF_ERROR(Validate(spec));
  LOCKSTEP_RETURN_IF_ERROR(CheckPlace(path));
  std::vector<std::uint64_t> offsets = {0};
  for (std::int64_t i = 0; i < spec.samples; ++i) {
    offsets.push_back(offsets.back() + static_cast<std::uint64_t>(BytesOfSample(spec, i)));
  }
  const auto bytes = static_cast<std::int64_t>(offsets.back());
  Temporary temporary(path);
  std::error_code code;
  const fs::space_info room = fs::space(temporary.path().parent_path(), code);
  if (code) return CannotWrite(path, code.message());
  if (room.available < offsets.back()) {
    return CannotWrite(path, fmt::format("{} of samples, {} free", FormatBytes(bytes),
                                         FormatBytes(static_cast<std::int64_t>(room.available))));
  }
  // 16 bytes a sample are its offset and checksum; HDF5's own take a few kilobytes.
  if (!temporary.Reserve(offsets.back() + 16 * offsets.size() + 65536)) {
    return CannotWrite(path, std::strerror(errno));
  }
  const hdf5::Silence silence;
  hdf5::Handle made(H5Fcreate(temporary.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                    H5Fclose);
  if (!made.ok()) return CannotWrite(path, std::strerror(errno));
  hdf5::File file(made.get());
  WriteSpec(file, spec);
  WriteSamples(file, spec, offsets);
  if (file.ok() && H5Fflush(file.id, H5F_SCOPE_GLOBAL) < 0) file.Note(std::strerror(errno));
  made = hdf5::Handle();
  if (!file.ok()) return CannotWrite(path, file.text());
  if (!temporary.Publish(path)) return CannotWrite(path, std::strerror(errno));
  return bytes;
}

}  // namespace lockstep::datasets::shards
