// RAII for a file descriptor, and whole reads and writes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <utility>

namespace lockstep::results::store {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Close(); }

  bool ok() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Closes now; false with errno when that loses data (a network file system says so here).
  bool Close();

 private:
  int fd_;
};

// Reads until `bytes` is full or the file ends; how many were read, -1 with errno on an error.
ssize_t ReadFully(int fd, std::span<std::byte> bytes);
// Writes all; false with errno on an error.
bool WriteFully(int fd, std::span<const std::byte> bytes);

}  // namespace lockstep::results::store
