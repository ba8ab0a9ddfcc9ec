#include <fmt/format.h>

#include "watch/run/stacks/source_lines.h"

namespace lockstep::watch::run::stacks {

struct SourceLines::Impl {};

SourceLines::SourceLines() = default;
SourceLines::~SourceLines() = default;

std::string SourceLines::At(const std::string&, std::uint64_t return_address) {
  return fmt::format("{:#x}", return_address);
}

}  // namespace lockstep::watch::run::stacks
