// Collectives that are kept to be replayed.
#ifndef LOCKSTEP_CORE_COMM_CAPTURED_CALLS_H_
#define LOCKSTEP_CORE_COMM_CAPTURED_CALLS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/collective/collective.h"
#include "core/device/native_stream.h"
#include "core/journal/event.h"
#include "core/journal/purpose.h"

namespace lockstep::comm {

struct CollectiveCall {
  collective::Operation operation;
  collective::Buffers buffers;
};

// Made and replayed by one RecordedCommunicator. Other shapes or buffers are another capture.
struct CapturedCalls {
  std::vector<collective::Operation> operations;
  std::vector<journal::Annotation> purposes;  // of the operations, when they were captured
  std::unique_ptr<device::StreamGraph> graph;
  bool marked = false;  // the device counts each call's begin and end
  std::int32_t replays = 0;
  std::vector<journal::JournalEvent> events;  // of the newest replay
};

}  // namespace lockstep::comm

#endif  // LOCKSTEP_CORE_COMM_CAPTURED_CALLS_H_
