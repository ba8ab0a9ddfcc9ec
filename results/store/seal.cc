// Writes and verifies the first line of a run file. HDF5 trusts its input, so damage is told here,
// before HDF5 sees the file. The checksum runs in four lanes at the speed of memory.
#include "results/store/seal.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "core/base/random.h"
#include "results/store/run.h"

namespace lockstep::results::store {
namespace {

constexpr char kSealFormat[] = "Lockstep run file: HDF5 from byte 512 on. schema=%d bytes=%" PRIu64
                               " checksum=%016" PRIx64 "\n";
constexpr std::string_view kMagic = "Lockstep run file: ";
constexpr std::string_view kHdf5Magic = "\x89HDF\r\n\x1a\n";  // HDF5 file format, section II.A

// Four interleaved lanes of multiply-and-mix over 64-bit words: finds accidents, at the speed of
// memory; it is no signature.
class Checksum {
 public:
  void Add(std::span<const std::byte> bytes) {
    length_ += bytes.size();
    if (begun_ > 0) {
      const std::size_t missing = std::min(kWords - begun_, bytes.size());
      std::memcpy(begin_ + begun_, bytes.data(), missing);
      begun_ += missing;
      bytes = bytes.subspan(missing);
      if (begun_ < kWords) return;
      AddWords(begin_);
      begun_ = 0;
    }
    for (; bytes.size() >= kWords; bytes = bytes.subspan(kWords)) AddWords(bytes.data());
    if (bytes.empty()) return;
    std::memcpy(begin_, bytes.data(), bytes.size());
    begun_ = bytes.size();
  }
  // Of all that was added: the last words are filled up with zeros.
  std::uint64_t Value() {
    if (begun_ > 0) {
      std::memset(begin_ + begun_, 0, kWords - begun_);
      AddWords(begin_);
      begun_ = 0;
    }
    std::uint64_t value = length_;
    for (const std::uint64_t lane : lanes_) value = Mix64(value ^ lane);
    return value;
  }

 private:
  static constexpr std::size_t kWords = 32;  // bytes of four
  void AddWords(const std::byte* bytes) {
    std::uint64_t words[4];
    std::memcpy(words, bytes, kWords);
    for (int i = 0; i < 4; ++i) lanes_[i] = Step(lanes_[i], words[i]);
  }
  // A bijection of the lane for each word and of the word for each lane: one changed word always
  // changes the result.
  static std::uint64_t Step(std::uint64_t lane, std::uint64_t word) {
    lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
    return lane ^ (lane >> 29);
  }
  std::uint64_t lanes_[4] = {1, 2, 3, 4};
  std::uint64_t length_ = 0;
  std::byte begin_[kWords] = {};  // of words that are not complete yet
  std::size_t begun_ = 0;
};

Status Unreadable(const std::string& path, std::string_view what, std::string_view remedy) {
  return InvalidInput("{}: {}; {}", path, what, remedy);
}

// What a file without our first line is.
Status Foreign(const std::string& path, std::string_view head) {
  if (head.empty()) return Unreadable(path, "the file is empty", "name a file that a run wrote");
  if (head.substr(0, kHdf5Magic.size()) == kHdf5Magic) {
    return Unreadable(path, "an HDF5 file, but not of Lockstep",
                      "name a file that a run wrote, unchanged");
  }
  if (kMagic.substr(0, head.size()) == head.substr(0, kMagic.size())) {
    if (head.size() == kSealBytes) {
      return Unreadable(path, "its first line is damaged", "use an unmodified copy of it");
    }
    return Unreadable(path, fmt::format("truncated to {} bytes", head.size()),
                      "use a whole copy of it");
  }
  return Unreadable(path, "not an HDF5 file of Lockstep", "name a file that a run wrote");
}

struct Claims {
  int schema = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

// Reads until `bytes` is full or the file ends; how many were read, -1 with errno on an error.
ssize_t ReadFully(int fd, std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t size = read(fd, bytes.data() + done, bytes.size() - done);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return -1;
    if (size == 0) break;
    done += static_cast<std::size_t>(size);
  }
  return static_cast<ssize_t>(done);
}

Status VerifyBody(const std::string& path, int fd, const Claims& claims) {
  std::vector<std::byte> block(std::size_t{1} << 20);
  Checksum checksum;
  bool last = false;
  while (!last) {
    const ssize_t size = ReadFully(fd, block);
    if (size < 0) {
      return Unreadable(path, fmt::format("cannot be read ({})", std::strerror(errno)),
                        "use another copy of it");
    }
    last = static_cast<std::size_t>(size) < block.size();
    checksum.Add(std::span(block).first(static_cast<std::size_t>(size)));
  }
  if (checksum.Value() == claims.checksum) return OkStatus();
  return Unreadable(path, "its contents changed after it was written (the checksum differs)",
                    "use an unmodified copy of it");
}

}  // namespace

std::array<char, kSealBytes> SealOf(const std::vector<std::span<const std::byte>>& body) {
  Checksum checksum;
  std::uint64_t bytes = kSealBytes;
  for (const std::span<const std::byte> piece : body) {
    checksum.Add(piece);
    bytes += piece.size();
  }
  std::array<char, kSealBytes> seal{};
  std::snprintf(seal.data(), seal.size(), kSealFormat, kSchemaVersion, bytes, checksum.Value());
  return seal;
}

Status VerifySeal(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) {
    return Unreadable(path, fmt::format("cannot be opened ({})", std::strerror(errno)),
                      "name a file that a run wrote");
  }
  if (!S_ISREG(facts.st_mode)) {
    return Unreadable(path, S_ISDIR(facts.st_mode) ? "is a directory" : "is no regular file",
                      "name a file that a run wrote");
  }
  std::array<std::byte, kSealBytes> head{};
  const ssize_t size = ReadFully(file.get(), head);
  const std::string text(reinterpret_cast<const char*>(head.data()),
                         static_cast<std::size_t>(size < 0 ? 0 : size));
  Claims claims;
  if (std::sscanf(text.c_str(), kSealFormat, &claims.schema, &claims.bytes, &claims.checksum) !=
      3) {
    return Foreign(path, text);
  }
  if (claims.schema > kSchemaVersion) {
    return Unreadable(
        path,
        fmt::format("of schema {}, newer than this program's {}", claims.schema, kSchemaVersion),
        "read it with a newer Lockstep");
  }
  if (static_cast<std::uint64_t>(facts.st_size) != claims.bytes) {
    const bool shorter = static_cast<std::uint64_t>(facts.st_size) < claims.bytes;
    return Unreadable(path,
                      fmt::format("{} {} of {} bytes",
                                  shorter ? "truncated:" : "altered:", facts.st_size, claims.bytes),
                      "use a whole, unmodified copy of it");
  }
  return VerifyBody(path, file.get(), claims);
}

}  // namespace lockstep::results::store
