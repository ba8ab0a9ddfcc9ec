// One elfutils session a file and place. A process that ended can still be asked about, because the
// map of its memory was copied when it began. Debug information elsewhere (debuginfod) is not
// looked for.
#include "watch/run/stacks/source_lines.h"

#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

namespace lockstep::watch::run::stacks {
namespace {

struct DwflEnd {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};

int NoDebugInfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                char**) {
  return -1;
}

struct Place {
  std::string path;
  std::uint64_t bias = 0;
};

// A program that is not position-independent lies where its headers say.
bool Relocated(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char start[18] = {};
  file.read(start, sizeof start);
  constexpr char kExecutable = 2;
  return start[16] != kExecutable;
}

std::optional<Place> Find(const std::string& maps, std::uint64_t address) {
  std::istringstream lines(maps);
  std::string line;
  while (std::getline(lines, line)) {
    unsigned long long first = 0;
    unsigned long long end = 0;
    unsigned long long offset = 0;
    int used = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %*s %llx %*s %*s %n", &first, &end, &offset, &used) <
        3) {
      continue;
    }
    if (address < first || address >= end) continue;
    Place place{line.substr(static_cast<std::size_t>(used)), 0};
    if (Relocated(place.path)) place.bias = first - offset;
    return place;
  }
  return std::nullopt;
}

std::string Name(Dwfl_Module* module, const std::string& path, std::uint64_t address) {
  int line = 0;
  if (Dwfl_Line* const found = dwfl_module_getsrc(module, address)) {
    const char* const source = dwfl_lineinfo(found, nullptr, &line, nullptr, nullptr, nullptr);
    if (source)
      return fmt::format("{}:{}", std::filesystem::path(source).filename().string(), line);
  }
  const char* const symbol = dwfl_module_addrname(module, address);
  const std::string file = std::filesystem::path(path).filename().string();
  return symbol ? fmt::format("{}@{}", symbol, file) : fmt::format("{:#x}@{}", address, file);
}

}  // namespace

struct SourceLines::Impl {
  std::map<std::pair<std::string, std::uint64_t>, std::unique_ptr<Dwfl, DwflEnd>> sessions;

  Dwfl* Session(const Place& place) {
    static const Dwfl_Callbacks kCallbacks = {dwfl_build_id_find_elf, NoDebugInfo,
                                              dwfl_offline_section_address, nullptr};
    auto& session = sessions[{place.path, place.bias}];
    if (session) return session.get();
    session.reset(dwfl_begin(&kCallbacks));
    if (!session) return nullptr;
    dwfl_report_begin(session.get());
    dwfl_report_elf(session.get(), place.path.c_str(), place.path.c_str(), -1, place.bias, true);
    dwfl_report_end(session.get(), nullptr, nullptr);
    return session.get();
  }
};

SourceLines::SourceLines() : impl_(std::make_unique<Impl>()) {}
SourceLines::~SourceLines() = default;

std::string SourceLines::At(const std::string& maps, std::uint64_t return_address) {
  if (return_address == 0) return "?";
  const std::uint64_t address = return_address - 1;  // it may be the first of the next line
  const std::optional<Place> place = Find(maps, address);
  if (!place) return fmt::format("{:#x}", address);
  Dwfl* const session = impl_->Session(*place);
  Dwfl_Module* const module = session ? dwfl_addrmodule(session, address) : nullptr;
  return module ? Name(module, place->path, address) : fmt::format("{:#x}", address);
}

}  // namespace lockstep::watch::run::stacks
