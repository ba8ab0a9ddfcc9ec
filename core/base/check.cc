#include "core/base/check.h"

#include <unistd.h>

#include <cstdio>

namespace lockstep {

void CheckFailed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "lockstep: %s:%d: CHECK failed: %s: %.*s (this is a defect of Lockstep)\n",
               file, line, condition, static_cast<int>(message.size()), message.data());
  std::fflush(stderr);
  _exit(10);
}

}  // namespace lockstep
