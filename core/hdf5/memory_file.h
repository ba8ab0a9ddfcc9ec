// An HDF5 file that is built in memory. Large data are not copied into it: they stay where their
// owner has them, and the file's bytes are told as pieces.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <span>
#include <vector>

#include "core/hdf5/handle.h"

namespace lockstep::hdf5 {

// Where the driver keeps the bytes of one file. Outlives the file. Single-threaded, as HDF5 is.
class MemoryFile {
 public:
  // `lent`: data that stay as they are, and where they are, while this lives.
  explicit MemoryFile(std::vector<std::span<const std::byte>> lent);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Makes `access` (a list of H5P_FILE_ACCESS) create files here; false: HDF5 refused.
  bool UseIn(hid_t access);
  // The bytes from `begin` to the end, in order; `begin` lies before all lent data. The file was
  // flushed, and does not change while they are used.
  std::vector<std::span<const std::byte>> Pieces(std::size_t begin) const;

  // For the driver: places are bytes of the file, and those that are written or read lie before its
  // end. False: no memory.
  bool SetEnd(std::size_t end);
  std::size_t end() const { return end_; }
  void Write(std::size_t place, std::span<const std::byte> data);
  void Read(std::size_t place, std::span<std::byte> data) const;

 private:
  struct Piece {
    std::size_t place = 0;
    std::span<const std::byte> data;
    std::size_t end() const { return place + data.size(); }
  };
  bool IsLent(std::span<const std::byte> data) const;
  void Own(const Piece& piece);

  std::vector<std::span<const std::byte>> lent_;
  std::vector<Piece> pieces_;  // lent ones that are in the file; by place, none overlap
  // Of the whole file; pages behind lent pieces are never touched, so they take no memory.
  std::byte* memory_ = nullptr;
  std::size_t mapped_ = 0;
  std::size_t end_ = 0;  // of what HDF5 has given out
};

}  // namespace lockstep::hdf5
