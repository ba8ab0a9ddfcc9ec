// Ranks of the stand-in library meet in one memfd, which they open through /proc of the process
// that made it. Every wait asks a function whether to leave, so an aborted rank gets out. Like
// NCCL, a rank allocates in /dev/shm when it connects, and fails where that is full.
#include "core/comm/nccl/testing/fake_world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/comm/nccl/pause.h"

namespace lockstep::comm::nccl {
namespace {

constexpr off_t kSegmentBytes = 1 << 20;

// What ranks of one host need of /dev/shm when they connect: allocated, so that a full one is
// noticed here and not by a SIGBUS later.
bool AllocateSegment() {
  const int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool allocated = fallocate(fd, 0, 0, kSegmentBytes) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  return allocated;
}

}  // namespace

WorldAddress FakeWorld::Create() {
  const int fd = memfd_create("lockstep-fake-nccl", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) return {};
  return {getpid(), fd};
}

std::unique_ptr<FakeWorld> FakeWorld::Open(WorldAddress address, int rank, int size,
                                           std::function<bool()> leave) {
  if (!AllocateSegment()) return nullptr;
  const std::string path =
      "/proc/" + std::to_string(address.pid) + "/fd/" + std::to_string(address.fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return nullptr;
  auto* const shared = static_cast<Shared*>(memory);
  shared->attached.fetch_add(1);
  return std::unique_ptr<FakeWorld>(new FakeWorld(shared, rank, size, std::move(leave)));
}

FakeWorld::~FakeWorld() { munmap(shared_, sizeof(Shared)); }

bool FakeWorld::WaitUntil(const std::function<bool()>& there) {
  for (Pause pause; !there(); pause()) {
    if (leave_()) return false;
  }
  return true;
}

bool FakeWorld::AwaitAll() {
  return WaitUntil([this] { return shared_->attached.load() >= static_cast<unsigned>(size_); });
}

bool FakeWorld::Barrier() {
  const std::uint32_t generation = shared_->generation.load();
  if (shared_->arrived.fetch_add(1) + 1 == static_cast<unsigned>(size_)) {
    shared_->arrived.store(0);
    shared_->generation.fetch_add(1);
    return true;
  }
  return WaitUntil([&] { return shared_->generation.load() != generation; });
}

bool FakeWorld::Meet(std::uint32_t kind) {
  shared_->kinds[rank_].store(kind);
  if (!Barrier()) return false;
  for (int peer = 0; peer < size_; ++peer) {
    if (shared_->kinds[peer].load() != kind) return WaitUntil([] { return false; });
  }
  return true;
}

bool FakeWorld::Send(int peer, const std::byte* data, std::size_t bytes) {
  Mailbox& box = shared_->mailboxes[peer][rank_];
  for (std::size_t at = 0; at < bytes; at += sizeof(box.data)) {
    if (!WaitUntil([&] { return box.full.load() == 0; })) return false;
    std::memcpy(box.data, data + at, std::min(sizeof(box.data), bytes - at));
    box.full.store(1);
  }
  return true;
}

bool FakeWorld::Receive(int peer, std::byte* data, std::size_t bytes) {
  Mailbox& box = shared_->mailboxes[rank_][peer];
  for (std::size_t at = 0; at < bytes; at += sizeof(box.data)) {
    if (!WaitUntil([&] { return box.full.load() == 1; })) return false;
    std::memcpy(data + at, box.data, std::min(sizeof(box.data), bytes - at));
    box.full.store(0);
  }
  return true;
}

}  // namespace lockstep::comm::nccl
