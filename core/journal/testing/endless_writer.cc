// endless_writer FD CAPACITY: the victim of journal_kill_test. Ends only by a signal.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/base/check.h"
#include "core/journal/journal.h"
#include "core/journal/testing/self_describing_event.h"

int main(int argc, char** argv) {
  LOCKSTEP_CHECK(argc == 3, "usage: endless_writer FD CAPACITY");
  const int fd = std::atoi(argv[1]);
  const std::size_t capacity = std::strtoull(argv[2], nullptr, 10);
  const std::size_t bytes = lockstep::journal::JournalBytes(capacity);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  LOCKSTEP_CHECK(memory != MAP_FAILED, "mmap of the journal");
  auto writer = lockstep::journal::JournalWriter::Create(
      std::span(static_cast<std::byte*>(memory), bytes), capacity);
  for (std::uint64_t index = 1;; ++index)
    writer.Append(lockstep::journal::SelfDescribingEvent(index));
}
