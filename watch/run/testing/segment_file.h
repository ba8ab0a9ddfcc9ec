// The file of a process that is watched, as the process would make it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "watch/events/segment.h"

namespace lockstep::watch::run {

// In memory until munmap; the file stays.
inline events::Header* MakeSegment(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  EXPECT_EQ(ftruncate(file, events::kSegmentBytes), 0);
  void* const memory =
      mmap(nullptr, events::kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  auto* const header = static_cast<events::Header*>(memory);
  header->magic = events::kMagic;
  return header;
}

}  // namespace lockstep::watch::run
