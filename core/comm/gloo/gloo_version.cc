#include <gloo/config.h>

#include <fstream>
#include <string>

#include "core/comm/gloo/gloo_communicator.h"
#include "fmt/format.h"

namespace lockstep::comm::gloo {
namespace {

// The version of an installed package as the package manager's database has it; empty if unknown.
std::string DebianVersionOf(const std::string& package) {
  std::ifstream database("/var/lib/dpkg/status");
  bool inside = false;
  for (std::string line; std::getline(database, line);) {
    if (line.rfind("Package: ", 0) == 0) inside = line == "Package: " + package;
    if (inside && line.rfind("Version: ", 0) == 0) return line.substr(9);
  }
  return "";
}

}  // namespace

// gloo's library does not tell its version, so this is what it was compiled against and, on Debian,
// what is installed.
std::string GlooVersion() {
  std::string version =
      fmt::format("{}.{}.{} (headers)", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  const std::string package = DebianVersionOf("libgloo0");
  if (!package.empty()) version += fmt::format(", libgloo0 {}", package);
  return version;
}

}  // namespace lockstep::comm::gloo
