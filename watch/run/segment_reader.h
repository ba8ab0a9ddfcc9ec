// The reader's end of a watched process's segment.
#ifndef LOCKSTEP_WATCH_RUN_SEGMENT_READER_H_
#define LOCKSTEP_WATCH_RUN_SEGMENT_READER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "watch/events/segment.h"

namespace lockstep::watch::run {

class SegmentReader {
 public:
  // An error also where the writer is not ready yet: try again.
  static Result<std::unique_ptr<SegmentReader>> Open(const std::string& path);
  ~SegmentReader();
  SegmentReader(const SegmentReader&) = delete;
  SegmentReader& operator=(const SegmentReader&) = delete;

  // Gives every event that is complete to `take`, in order, and its memory back; at most `most`.
  // How many.
  std::uint64_t Drain(std::uint64_t most, const std::function<void(const events::Event&)>& take);

  const events::Header& header() const { return *header_; }
  std::uint64_t read() const { return read_; }
  pid_t pid() const { return header_->pid; }

 private:
  SegmentReader(int file, void* memory);

  int file_;
  events::Header* header_;
  events::Event* ring_;
  std::uint64_t read_ = 0;
};

}  // namespace lockstep::watch::run

#endif  // LOCKSTEP_WATCH_RUN_SEGMENT_READER_H_
