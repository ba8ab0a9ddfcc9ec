#include "results/store/descriptor.h"

#include <unistd.h>

#include <cerrno>

namespace lockstep::results::store {

bool Descriptor::Close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || close(fd) == 0;
}

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

bool WriteFully(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace lockstep::results::store
