// The reader's end of a watched process's segment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/base/status.h"
#include "watch/events/segment.h"

namespace lockstep::watch::run {

class SegmentReader {
 public:
  // An error also where the writer is not ready yet: try again.
  static Result<std::unique_ptr<SegmentReader>> Open(const std::string& path);
  // Nobody will read the events of this file: its writer stops in silence.
  static void Abandon(const std::string& path);
  ~SegmentReader();
  SegmentReader(const SegmentReader&) = delete;
  SegmentReader& operator=(const SegmentReader&) = delete;

  using Take = std::function<void(std::span<const events::Event>)>;
  // Gives every event that is complete to `take`, in order, some at a time; at most `most`. Their
  // memory goes back to the writer a chunk later. How many.
  std::uint64_t Drain(std::uint64_t most, const Take& take);

  const events::Header& header() const { return *header_; }
  std::uint64_t read() const { return read_; }
  pid_t pid() const { return header_->pid; }

 private:
  explicit SegmentReader(void* memory);
  // Complete events that lie one behind the other, from the next one on.
  std::span<const events::Event> Complete(std::uint64_t most) const;

  events::Header* header_;
  std::uint64_t read_ = 0;
};

}  // namespace lockstep::watch::run
