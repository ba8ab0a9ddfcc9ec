// A driver of HDF5 (VFD) over one mapping. HDF5 hands large contiguous data to its driver as they
// lie in the caller's memory. So what was lent is noted by place and pointer. All else, metadata
// and what was converted, is copied. Whatever HDF5 writes over lent data first makes a copy of
// them.
#include "core/hdf5/memory_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>

namespace lockstep::hdf5 {
namespace {

constexpr std::size_t kGrowth = std::size_t{1} << 20;

// What HDF5 holds of an open file: its own part first.
struct OpenFile {
  H5FD_t base;
  MemoryFile* file;
};

MemoryFile& FileOf(const H5FD_t* open) { return *reinterpret_cast<const OpenFile*>(open)->file; }

H5FD_t* Open(const char* /*name*/, unsigned /*flags*/, hid_t access, haddr_t /*most*/) {
  const auto* const file = static_cast<MemoryFile* const*>(H5Pget_driver_info(access));
  return file == nullptr ? nullptr : &(new OpenFile{{}, *file})->base;
}

herr_t Close(H5FD_t* open) {
  delete reinterpret_cast<OpenFile*>(open);
  return 0;
}

// As HDF5's own driver of files in memory: so the layout is the same.
herr_t Query(const H5FD_t* /*open*/, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t End(const H5FD_t* open, H5FD_mem_t /*type*/) { return FileOf(open).end(); }

herr_t SetEnd(H5FD_t* open, H5FD_mem_t /*type*/, haddr_t end) {
  return FileOf(open).SetEnd(end) ? 0 : -1;
}

herr_t Read(H5FD_t* open, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t place, std::size_t bytes,
            void* data) {
  FileOf(open).Read(place, {static_cast<std::byte*>(data), bytes});
  return 0;
}

herr_t Write(H5FD_t* open, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t place,
             std::size_t bytes, const void* data) {
  FileOf(open).Write(place, {static_cast<const std::byte*>(data), bytes});
  return 0;
}

hid_t Driver() {
  static const H5FD_class_t driver = [] {
    H5FD_class_t made = {};
    made.name = "lockstep_memory";
    made.maxaddr = ~haddr_t{0} >> 2;
    made.fc_degree = H5F_CLOSE_WEAK;
    made.fapl_size = sizeof(MemoryFile*);
    made.open = Open;
    made.close = Close;
    made.query = Query;
    made.get_eoa = End;
    made.set_eoa = SetEnd;
    made.get_eof = End;
    made.read = Read;
    made.write = Write;
    constexpr H5FD_mem_t kMap[] = H5FD_FLMAP_SINGLE;
    std::copy(std::begin(kMap), std::end(kMap), made.fl_map);
    return made;
  }();
  static const hid_t id = H5FDregister(&driver);
  return id;
}

}  // namespace

MemoryFile::MemoryFile(std::vector<std::span<const std::byte>> lent) : lent_(std::move(lent)) {
  std::ranges::sort(lent_, std::less<>(), [](const auto& one) { return one.data(); });
}

MemoryFile::~MemoryFile() {
  if (memory_ != nullptr) munmap(memory_, mapped_);
}

bool MemoryFile::UseIn(hid_t access) {
  MemoryFile* const self = this;
  return Driver() >= 0 && H5Pset_driver(access, Driver(), &self) >= 0;
}

bool MemoryFile::IsLent(std::span<const std::byte> data) const {
  const auto next = std::ranges::upper_bound(lent_, data.data(), std::less<>(),
                                             [](const auto& one) { return one.data(); });
  if (next == lent_.begin()) return false;
  const std::span<const std::byte> lent = *std::prev(next);
  return data.data() + data.size() <= lent.data() + lent.size();
}

bool MemoryFile::SetEnd(std::size_t end) {
  if (end > mapped_) {
    const std::size_t bytes = (std::max(end, mapped_ + mapped_ / 2) / kGrowth + 1) * kGrowth;
    void* const made = memory_ == nullptr ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                          : mremap(memory_, mapped_, bytes, MREMAP_MAYMOVE);
    if (made == MAP_FAILED) return false;
    memory_ = static_cast<std::byte*>(made);
    mapped_ = bytes;
  }
  end_ = end;
  return true;
}

void MemoryFile::Own(const Piece& piece) {
  std::memcpy(memory_ + piece.place, piece.data.data(), piece.data.size());
}

void MemoryFile::Write(std::size_t place, std::span<const std::byte> data) {
  if (data.empty()) return;
  const Piece piece = {place, data};
  auto first = std::ranges::upper_bound(pieces_, place, std::less<>(), &Piece::end);
  auto last = first;
  for (; last != pieces_.end() && last->place < piece.end(); ++last) Own(*last);
  first = pieces_.erase(first, last);
  if (!IsLent(data)) return Own(piece);
  pieces_.insert(first, piece);
}

std::vector<std::span<const std::byte>> MemoryFile::Pieces(std::size_t begin) const {
  std::vector<std::span<const std::byte>> pieces;
  const auto add_own = [&](std::size_t from, std::size_t to) {
    if (from < to) pieces.push_back({memory_ + from, to - from});
  };
  for (const Piece& piece : pieces_) {
    add_own(begin, piece.place);
    pieces.push_back(piece.data);
    begin = piece.end();
  }
  add_own(begin, end_);
  return pieces;
}

void MemoryFile::Read(std::size_t place, std::span<std::byte> data) const {
  std::size_t at = 0;
  for (std::span<const std::byte> piece : Pieces(0)) {
    const std::size_t from = std::max(at, place);
    const std::size_t to = std::min(at + piece.size(), place + data.size());
    if (from < to) std::memcpy(data.data() + (from - place), piece.data() + (from - at), to - from);
    at += piece.size();
  }
}

}  // namespace lockstep::hdf5
