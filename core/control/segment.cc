// One memfd holds all that agent and worker share: card, device marks, journal, outbox. The header
// says the sizes; a seal keeps either from shrinking it under the other's feet.
#include "core/control/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "core/control/outbox.h"
#include "core/journal/device_marks.h"
#include "core/journal/journal.h"

namespace lockstep::control {
namespace {

constexpr std::uint64_t kMagic = 0x3130'7473'6b6c'0000;
constexpr std::size_t kCardOffset = 2048;
constexpr std::size_t kMarksOffset = 4096;
constexpr std::size_t kSegmentHeaderBytes = kMarksOffset + journal::kDeviceMarksBytes;

struct Header {
  std::uint64_t magic;
  std::uint64_t journal_capacity;
  std::uint64_t outbox_capacity;
};
static_assert(sizeof(Header) <= kCardOffset && kCardOffset + kWorkerCardBytes <= kMarksOffset);

std::size_t RoundUp(std::size_t bytes) { return (bytes + 4095) & ~std::size_t{4095}; }

std::size_t SegmentBytes(std::size_t journal_capacity, std::size_t outbox_capacity) {
  return kSegmentHeaderBytes + RoundUp(journal::JournalBytes(journal_capacity)) +
         RoundUp(OutboxBytes(outbox_capacity));
}

Result<std::byte*> MapShared(int fd, std::size_t bytes, int flags) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
  if (memory == MAP_FAILED) {
    return EnvironmentError(
        "cannot map {} bytes of memory shared by agent and worker: {}; free memory or raise the "
        "limit",
        bytes, std::strerror(errno));
  }
  return static_cast<std::byte*>(memory);
}

}  // namespace

Result<std::unique_ptr<Segment>> Segment::Create(std::size_t journal_capacity,
                                                 std::size_t outbox_capacity) {
  const std::size_t bytes = SegmentBytes(journal_capacity, outbox_capacity);
  Fd fd(memfd_create("lockstep", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // fallocate reserves the pages: lacking memory is an error here and no SIGBUS later.
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    // The file size limit counts for files in memory, too.
    const char* const remedy =
        errno == EFBIG ? "raise the file size limit (ulimit -f)" : "free memory or raise the limit";
    return EnvironmentError("cannot make {} bytes of memory shared by agent and worker: {}; {}",
                            bytes, std::strerror(errno), remedy);
  }
  // The agent looks at what a worker wrote, and times nothing.
  LOCKSTEP_ASSIGN_OR_RETURN(std::byte* const memory, MapShared(fd.get(), bytes, 0));
  const Header header{kMagic, journal_capacity, outbox_capacity};
  std::memcpy(memory, &header, sizeof header);
  return std::unique_ptr<Segment>(
      new Segment(std::move(fd), memory, bytes, journal_capacity, outbox_capacity));
}

Result<std::unique_ptr<Segment>> Segment::Map(Fd fd) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || info.st_size < static_cast<off_t>(kSegmentHeaderBytes)) {
    return EnvironmentError(
        "the memory shared with the agent is missing; start this program with "
        "the launcher, not as a worker by hand");
  }
  const auto bytes = static_cast<std::size_t>(info.st_size);
  // Populated: no page fault is left for a timed region.
  LOCKSTEP_ASSIGN_OR_RETURN(std::byte* const memory, MapShared(fd.get(), bytes, MAP_POPULATE));
  Header header;
  std::memcpy(&header, memory, sizeof header);
  std::unique_ptr<Segment> segment(
      new Segment(std::move(fd), memory, bytes, header.journal_capacity, header.outbox_capacity));
  if (header.magic != kMagic || !std::has_single_bit(header.journal_capacity) ||
      !std::has_single_bit(header.outbox_capacity) ||
      SegmentBytes(header.journal_capacity, header.outbox_capacity) != bytes) {
    return EnvironmentError(
        "the memory shared with the agent has another shape; agent and worker "
        "must be the same program");
  }
  return segment;
}

Segment::~Segment() { munmap(memory_, bytes_); }

std::span<std::byte> Segment::card() const { return {memory_ + kCardOffset, kWorkerCardBytes}; }

std::span<std::byte> Segment::device_marks() const {
  return {memory_ + kMarksOffset, journal::kDeviceMarksBytes};
}

std::span<std::byte> Segment::journal() const {
  return {memory_ + kSegmentHeaderBytes, journal::JournalBytes(journal_capacity_)};
}

std::span<std::byte> Segment::outbox() const {
  return {memory_ + kSegmentHeaderBytes + RoundUp(journal::JournalBytes(journal_capacity_)),
          OutboxBytes(outbox_capacity_)};
}

namespace {

constexpr std::size_t kBusBytes = 64;

void Write(std::span<std::byte> field, const std::string& text) {
  if (text.size() >= field.size()) return;
  std::memcpy(field.data(), text.c_str(), text.size() + 1);
}

std::string Read(std::span<const std::byte> field) {
  const std::string_view all(reinterpret_cast<const char*>(field.data()), field.size());
  const std::string_view text = all.substr(0, all.find('\0'));
  const bool sane =
      text.size() < all.size() && text.find_first_of("\n\r\t\x1b") == std::string_view::npos;
  return sane ? std::string(text) : "";
}

}  // namespace

void WriteCard(std::span<std::byte> memory, const WorkerCard& card) {
  LOCKSTEP_CHECK(memory.size() == kWorkerCardBytes, "memory of another size than a card's");
  Write(memory.first(kBusBytes), card.gpu_bus);
  Write(memory.subspan(kBusBytes), card.log_file);
}

WorkerCard ReadCard(std::span<const std::byte> memory) {
  LOCKSTEP_CHECK(memory.size() == kWorkerCardBytes, "memory of another size than a card's");
  return {Read(memory.first(kBusBytes)), Read(memory.subspan(kBusBytes))};
}

}  // namespace lockstep::control
