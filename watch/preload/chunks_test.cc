// The writer's memory, and a reader that keeps up, lags, or reads nothing. Counted in the blocks of
// the file, as the system does.
#include "watch/preload/chunks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <set>

namespace lockstep::watch::preload {
namespace {

using events::Event;
using events::Phase;
using events::Stopped;

class ChunksTest : public testing::Test {
 protected:
  ChunksTest() : file_(memfd_create("chunks", 0)), header_(chunks_->Open(file_)) {}
  ~ChunksTest() override {
    if (header_) munmap(header_, events::kSegmentBytes);
    close(file_);
  }

  std::size_t KeptChunks() const {
    struct stat facts;
    fstat(file_, &facts);
    return (static_cast<std::size_t>(facts.st_blocks) * 512 - events::kHeaderBytes) /
           events::kChunkBytes;
  }
  Event& EventAt(std::uint64_t event) {
    return *reinterpret_cast<Event*>(reinterpret_cast<char*>(header_) +
                                     events::OffsetOf(*header_, event));
  }
  // All chunks up to this one; the reader is so many behind the newest.
  Stopped PrepareUpTo(std::uint64_t chunk, std::uint64_t behind) {
    for (; next_ <= chunk; ++next_) {
      if (next_ > behind) header_->tail.store((next_ - behind) * events::kChunkEvents);
      const Stopped why = chunks_->Prepare(next_);
      if (why != Stopped::kNo) return why;
    }
    return Stopped::kNo;
  }

  std::unique_ptr<Chunks> chunks_ = std::make_unique<Chunks>();
  int file_;
  events::Header* header_;
  std::uint64_t next_ = 1;
};

TEST_F(ChunksTest, AReaderThatKeepsUpNeedsAFew) {
  ASSERT_NE(header_, nullptr);
  // 40 million events.
  ASSERT_EQ(PrepareUpTo(10'000, 2), Stopped::kNo);
  EXPECT_EQ(KeptChunks(), Chunks::kFirst);
  EXPECT_EQ(header_->ready.load(), 10'001u);
}

TEST_F(ChunksTest, AChunkThatIsUsedAgainIsEmpty) {
  for (std::uint64_t chunk = 1; chunk < 20; ++chunk) {
    ASSERT_EQ(PrepareUpTo(chunk, 2), Stopped::kNo);
    for (std::uint64_t each = 0; each < events::kChunkEvents; ++each) {
      Event& event = EventAt(chunk * events::kChunkEvents + each);
      ASSERT_EQ(event.phase, Phase::kNothing);
      event.phase = Phase::kEnter;
    }
  }
}

TEST_F(ChunksTest, ChunksThatWereNotReadStay) {
  ASSERT_EQ(PrepareUpTo(3000, 700), Stopped::kNo);
  std::set<std::size_t> places;
  for (std::uint64_t chunk = 3000 - 700; chunk <= 3000; ++chunk) {
    places.insert(events::OffsetOf(*header_, chunk * events::kChunkEvents));
  }
  EXPECT_EQ(places.size(), 701u);
}

TEST_F(ChunksTest, WhatALateReaderMadeLargeIsGivenBack) {
  ASSERT_EQ(PrepareUpTo(500, 1000), Stopped::kNo);
  EXPECT_EQ(KeptChunks(), 501u);
  ASSERT_EQ(PrepareUpTo(2000, 2), Stopped::kNo);
  EXPECT_LE(KeptChunks(), Chunks::kMostKept + 4);
}

TEST_F(ChunksTest, AReaderThatReadsNothingEndsIt) {
  EXPECT_EQ(PrepareUpTo(events::kChunks, 2 * events::kChunks), Stopped::kRingFull);
  EXPECT_EQ(next_, events::kChunks);
}

// Beyond it, the process would get a signal that ends it.
TEST_F(ChunksTest, ALimitOfFilesIsAnError) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  setrlimit(RLIMIT_FSIZE, &small);
  const int file = memfd_create("small", 0);
  Chunks chunks;
  errno = 0;
  EXPECT_EQ(chunks.Open(file), nullptr);
  EXPECT_EQ(errno, EFBIG);
  close(file);
  setrlimit(RLIMIT_FSIZE, &before);
}

}  // namespace
}  // namespace lockstep::watch::preload
