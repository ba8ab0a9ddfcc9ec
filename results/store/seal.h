// The first 512 bytes of a run file (HDF5's user block): a line of text with the schema, the length
// of the file and a checksum of the rest. With it a truncated, damaged or foreign file is told
// before HDF5, which trusts its input, looks at it.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace lockstep::results::store {

inline constexpr std::size_t kSealBytes = 512;  // the smallest user block that HDF5 knows

// The seal of a file whose bytes from kSealBytes on are these, one after the other.
std::array<char, kSealBytes> SealOf(const std::vector<std::span<const std::byte>>& body);

// Ok when the file at `path` is whole and unchanged since it was sealed. Errors name the file, what
// it is instead (nothing, a directory, a text, another's HDF5, truncated, altered, of a newer
// schema) and the remedy.
Status VerifySeal(const std::string& path);

}  // namespace lockstep::results::store
