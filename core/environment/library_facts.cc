// Versions of NCCL are read out of the library's file, where its start message stands. Nothing is
// loaded, because a broken library may hang. MPI's version comes from mpirun, the toolkit's from a
// header.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "core/base/file_text.h"
#include "core/environment/facts.h"

namespace lockstep::environment {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunk = 1 << 20;
constexpr std::size_t kOverlap = 128;  // longer than the text that is looked for

// "2.28.9, built with CUDA 13.0": every release carries the text of its start message. Reading it
// runs nothing of a library that may be broken.
std::string VersionInside(const fs::path& path) {
  static const std::regex kVersion(R"(NCCL version (\d+\.\d+\.\d+)\+cuda(\d+\.\d+))");
  std::ifstream file(path, std::ios::binary);
  std::string window;
  std::vector<char> chunk(kChunk);
  while (file.read(chunk.data(), kChunk) || file.gcount() > 0) {
    window.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
    // A regular expression over megabytes is slow: it looks only where the words are.
    for (std::size_t at = window.find("NCCL version "); at != std::string::npos;
         at = window.find("NCCL version ", at + 1)) {
      std::smatch match;
      const std::string here = window.substr(at, kOverlap);
      if (std::regex_search(here, match, kVersion, std::regex_constants::match_continuous)) {
        return fmt::format("{}, built with CUDA {}", match[1].str(), match[2].str());
      }
    }
    window.erase(0, window.size() - std::min(window.size(), kOverlap));
  }
  return "unknown version";
}

void AddIfThere(const fs::path& path, std::set<fs::path>& found) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (!error && fs::is_regular_file(real, error)) found.insert(real);
}

// Folders of Python's packages, of the system's and of the environment that is active.
std::vector<fs::path> PythonPackages() {
  std::vector<fs::path> roots = {"/usr/lib", "/usr/local/lib", "/opt/conda/lib"};
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* root = std::getenv(variable)) roots.push_back(fs::path(root) / "lib");
  }
  std::vector<fs::path> folders;
  for (const fs::path& root : roots) {
    for (const fs::path& entry : EntriesOf(root)) {
      if (!entry.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        folders.push_back(entry / packages);
      }
    }
  }
  return folders;
}

// Where the dynamic linker, the toolkit and Python's packages have them.
std::set<fs::path> NcclLibraries() {
  std::vector<fs::path> directories = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                       "/usr/lib64", "/usr/local/lib", "/usr/local/cuda/lib64"};
  if (const char* list = std::getenv("LD_LIBRARY_PATH")) {
    std::istringstream parts(list);
    for (std::string part; std::getline(parts, part, ':');) {
      if (!part.empty()) directories.emplace_back(part);
    }
  }
  if (const char* root = std::getenv("NCCL_HOME")) directories.push_back(fs::path(root) / "lib");
  for (const fs::path& packages : PythonPackages()) {
    directories.push_back(packages / "nvidia/nccl/lib");
  }
  std::set<fs::path> found;
  for (const fs::path& directory : directories) AddIfThere(directory / "libnccl.so.2", found);
  return found;
}

// The first line that a command prints; empty when it can't be run.
std::string FirstLineOf(const char* command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
  std::array<char, 256> line{};
  if (!pipe || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return "";
  std::string text = line.data();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

fs::path CudaFolder() {
  const char* root = std::getenv("CUDA_PATH");
  return root != nullptr ? root : "/usr/local/cuda";
}

std::string ToolkitVersion() {
  std::ifstream file(CudaFolder() / "include/cuda.h");
  static const std::regex kDefine(R"(#define\s+CUDA_VERSION\s+(\d+))");
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, kDefine)) continue;
    const int code = std::atoi(match[1].str().c_str());  // 1000 major + 10 minor
    return fmt::format("{}.{}", code / 1000, code % 1000 / 10);
  }
  return "";
}

// CUDA runtimes that programs can load; PyTorch brings its own. The file's name tells the version.
void AddRuntimes(Facts& facts) {
  std::vector<fs::path> folders = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"};
  for (const char* below : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
    folders.push_back(CudaFolder() / below);
  }
  for (const fs::path& packages : PythonPackages()) {
    folders.push_back(packages / "nvidia/cuda_runtime/lib");
    folders.push_back(packages / "nvidia/cu13/lib");
  }
  std::set<fs::path> found;
  for (const fs::path& folder : folders) {
    for (const char* name : {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"}) {
      AddIfThere(folder / name, found);
    }
  }
  int number = 0;
  for (const fs::path& path : found) {
    facts.emplace_back(fmt::format("software/cuda_runtime{}", number++), path.string());
  }
}

}  // namespace

Facts LibraryFacts(const std::string& nccl_library) {
  Facts facts;
  int number = 0;
  std::set<fs::path> libraries;
  if (nccl_library.empty()) {
    libraries = NcclLibraries();
  } else {
    AddIfThere(nccl_library, libraries);
  }
  for (const fs::path& path : libraries) {
    const std::string version = VersionInside(path);
    const std::string group = fmt::format("nccl/{}", number++);
    facts.emplace_back(group + "/file", path.string());
    facts.emplace_back(group + "/version", version.substr(0, version.find(',')));
    const std::size_t cuda = version.rfind("CUDA ");
    if (cuda != std::string::npos) {
      facts.emplace_back(group + "/built_with_cuda", version.substr(cuda + 5));
    }
  }
  facts.emplace_back("nccl/libraries", fmt::format("{}", number));
  if (const std::string version = ToolkitVersion(); !version.empty()) {
    facts.emplace_back("software/cuda_toolkit", version);
  }
  // MPICH's says it in the second line: "    Version:                                 4.0.2".
  const std::string mpi = FirstLineOf(
      "timeout 5 mpirun --version 2>/dev/null | "
      "sed -n -e 's/^ *Version: */MPICH Hydra /' -e '/[0-9]/{p;q}'");
  facts.emplace_back("software/mpirun", mpi.empty() ? "not found" : mpi);
  // Its library does not tell a version; the package does.
  const std::string gloo = FirstLineOf("timeout 5 dpkg-query -W -f='${Version}' libgloo0 2>&1");
  facts.emplace_back("software/gloo", gloo.empty() || gloo.find(' ') != std::string::npos
                                          ? "unknown: no package libgloo0"
                                          : gloo);
  AddRuntimes(facts);
  return facts;
}

}  // namespace lockstep::environment
