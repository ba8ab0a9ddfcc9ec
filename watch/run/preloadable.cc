// What the dynamic linker would do with a program: none is asked for where it has no interpreter,
// and it ignores LD_PRELOAD where the program gets other rights than its caller has.
#include "watch/run/preloadable.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace lockstep::watch::run {
namespace {

std::string PathOf(const std::string& word) {
  if (word.empty() || word.front() == '-') return "";
  if (word.find('/') != std::string::npos) return word;
  const char* const folders = std::getenv("PATH");
  std::istringstream all(folders ? folders : "");
  for (std::string folder; std::getline(all, folder, ':');) {
    const std::string path = folder + "/" + word;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

bool IsStatic(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  const bool program = header.e_type == ET_EXEC || header.e_type == ET_DYN;
  if (std::memcmp(static_cast<const void*>(header.e_ident), ELFMAG, SELFMAG) != 0 || !program ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return false;
  }
  std::vector<Elf64_Phdr> parts(header.e_phnum);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  const auto bytes = static_cast<std::streamsize>(parts.size() * sizeof(Elf64_Phdr));
  if (!file.read(reinterpret_cast<char*>(parts.data()), bytes)) return false;
  for (const Elf64_Phdr& part : parts) {
    if (part.p_type == PT_INTERP) return false;
  }
  return true;
}

}  // namespace

std::string WhyNotPreloaded(const std::string& word) {
  const std::string path = PathOf(word);
  struct stat facts;
  if (path.empty() || stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      access(path.c_str(), X_OK) != 0) {
    return "";
  }
  const bool other_user = (facts.st_mode & S_ISUID) != 0 && facts.st_uid != geteuid();
  const bool other_group = (facts.st_mode & S_ISGID) != 0 && facts.st_gid != getegid();
  if (other_user || other_group) return "it runs as another user or group (set-user-ID)";
  if (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "it has capabilities of its own";
  }
  return IsStatic(path) ? "it is linked statically" : "";
}

}  // namespace lockstep::watch::run
