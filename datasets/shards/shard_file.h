// A dataset of samples in one HDF5 file, readable with h5py:
//   attributes of the root: format = "Lockstep dataset", schema, samples, kind, min_bytes,
//                           max_bytes, seed
//   /offset   u64 [samples + 1]   sample i is data[offset[i] : offset[i + 1]]
//   /checksum u64 [samples]       SampleChecksum of its bytes
//   /data     u8  [bytes]         contiguous
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "datasets/shards/samples.h"

namespace lockstep::datasets::shards {

inline constexpr int kShardSchema = 1;

// Writes it under a temporary name beside `path`, fsyncs and renames: complete or not at all.
// Returns the bytes of all samples.
Result<std::int64_t> MakeShardFile(const std::string& path, const DatasetSpec& spec);

// The file for reading, one thread at a time (HDF5's calls are not concurrent).
class ShardFile {
 public:
  // Errors name the file, what it is instead, and the remedy.
  static Result<ShardFile> Open(const std::string& path);
  ShardFile(ShardFile&&) noexcept;
  ShardFile& operator=(ShardFile&&) noexcept;
  ~ShardFile();

  const std::string& path() const { return path_; }
  const DatasetSpec& spec() const { return spec_; }
  std::int64_t samples() const { return spec_.samples; }
  std::int64_t bytes(std::int64_t index) const;
  std::uint64_t checksum(std::int64_t index) const;

  // The sample's bytes as they are in the file; nothing is verified.
  Status Read(std::int64_t index, std::vector<std::byte>& bytes) const;
  // Ok, or which sample of which file is not what was written.
  Status Verify(std::int64_t index, std::span<const std::byte> bytes) const;

 private:
  struct Open_;
  ShardFile();
  std::string path_;
  DatasetSpec spec_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint64_t> checksums_;
  std::unique_ptr<Open_> open_;
};

}  // namespace lockstep::datasets::shards
