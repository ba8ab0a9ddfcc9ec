// Reads the table of dynamic symbols by the section headers (elf(5)). A file can say anything, so
// every offset and size is held against the file's length before it is followed.
#include "core/environment/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace lockstep::environment {
namespace {

// A file in memory, for as long as it lives; empty when it can't be mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat facts {};
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
      const auto size = static_cast<std::size_t>(facts.st_size);
      void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (memory != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(memory), size};
    }
    error_ = fd < 0 ? errno : 0;
    if (fd >= 0) close(fd);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  int error() const { return error_; }

 private:
  std::span<const std::byte> bytes_;
  int error_ = 0;
};

using Bytes = std::span<const std::byte>;

// A copy of the T at `offset`; none where the file ends before.
template <typename T>
std::optional<T> At(Bytes file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

bool IsText(Bytes file, std::uint64_t offset, std::string_view text) {
  if (offset > file.size() || file.size() - offset <= text.size()) return false;
  return std::memcmp(file.data() + offset, text.data(), text.size()) == 0 &&
         file[offset + text.size()] == std::byte{0};
}

std::optional<Elf64_Shdr> SectionAt(Bytes file, const Elf64_Ehdr& header, std::uint64_t index) {
  if (index >= header.e_shnum || header.e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
  return At<Elf64_Shdr>(file, header.e_shoff + index * sizeof(Elf64_Shdr));
}

bool Defines(Bytes file, const Elf64_Ehdr& header, std::string_view symbol) {
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto table = SectionAt(file, header, i);
    if (!table || table->sh_type != SHT_DYNSYM || table->sh_offset > file.size()) continue;
    const auto names = SectionAt(file, header, table->sh_link);
    if (!names || names->sh_offset > file.size()) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
      const auto entry = At<Elf64_Sym>(file, table->sh_offset + at);
      if (!entry) break;
      const bool defined = entry->st_shndx != SHN_UNDEF;
      if (defined && IsText(file, names->sh_offset + entry->st_name, symbol)) return true;
    }
  }
  return false;
}

}  // namespace

Status CheckDefines(const std::string& path, std::string_view symbol) {
  const MappedFile file(path);
  const auto wrong = [&](std::string_view what) { return InvalidInput("'{}' {}", path, what); };
  if (file.error() != 0) {
    return wrong(fmt::format("can't be read ({})", std::strerror(file.error())));
  }
  const auto header = At<Elf64_Ehdr>(file.bytes(), 0);
  constexpr unsigned char kHere = __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return wrong("is no ELF shared library");
  }
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != kHere ||
      header->e_type != ET_DYN) {
    return wrong("is no shared library of 64 bits for this machine");
  }
  if (!Defines(file.bytes(), *header, symbol)) {
    return wrong(fmt::format("is a shared library without {}", symbol));
  }
  return OkStatus();
}

}  // namespace lockstep::environment
