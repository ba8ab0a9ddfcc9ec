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
  // memory goes back to the writer a chunk later. How many, as they are counted here: one that says
  // that its call returned, too, is two.
  std::uint64_t Drain(std::uint64_t most, const Take& take);
  // Calls that are counted, where these come next; and so many that are over are taken unread.
  events::Cycle Coming();
  void Pass(std::uint64_t calls);
  std::uint64_t read() const { return given_; }
  std::uint64_t places() const { return read_; }  // of events that were read
  // Equal to that where all was read; else more than was read, and at most what was written.
  std::uint64_t begun() const;

  // Takes its name from the file system: what was mapped stays until this reader goes.
  void Unlink() const;

  const events::Header& header() const { return *header_; }
  pid_t pid() const { return header_->pid; }

 private:
  SegmentReader(void* memory, std::string path);
  // Complete events that lie one behind the other, from the next one on.
  std::span<const events::Event> Complete(std::uint64_t most);
  void Give(std::span<const events::Event> some, const Take& take);
  events::Event& At(std::uint64_t event) const;
  // The event that was given last says by now that its call returned.
  bool LeftMeanwhile() const;
  // How many events the writer has begun by now, of those that have a place.
  std::uint64_t AskWriter();
  // Calls that are counted come next.
  bool ComesAgain();
  // Gives those, at most `most`, which it lessens. True: another event comes next.
  bool GiveAgain(std::uint64_t& most, const Take& take);

  events::Header* header_;
  std::string path_;
  std::uint64_t known_ = 0;  // events that the writer had begun when it was last asked
  std::uint64_t read_ = 0;   // places of events
  std::uint64_t given_ = 0;
  bool may_leave_ = false;        // the call of the event that was given last
  std::int64_t given_again_ = 0;  // steps of an event of kAgain, which comes next
};

}  // namespace lockstep::watch::run
