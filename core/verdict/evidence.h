// Everything that is known of each rank, and of the setting that it ran in, before anything is
// judged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/journal/device_marks.h"
#include "core/journal/event.h"
#include "core/journal/journal.h"
#include "core/journal/purpose.h"
#include "core/verdict/tcp_socket.h"

namespace lockstep::verdict {

using journal::Annotation;
using journal::EventKind;
using journal::JournalEvent;
using journal::Phase;
using journal::Purpose;

// How a worker process stands, as its agent sees it.
enum class ProcessState : std::uint8_t { kRunning, kStopped, kExited, kSignalled, kLost };

// Everything known of one rank at the moment of an interruption, before anything was ended by us.
struct RankEvidence {
  int rank = 0;
  ProcessState state = ProcessState::kRunning;  // kLost: its agent does not answer
  int exit_code = 0;                            // kExited
  int signal = 0;                               // kSignalled, kStopped
  journal::Journal journal;                     // the newest events
  double seconds_silent = 0;                    // from its newest event to the evidence
  // So long of that, in a call that waits for peers, it was kept from a processor. Elsewhere such
  // time is not silence.
  double starved_s = 0;
  bool idle = false;    // it waits for an order: not obliged to progress
  std::string error;    // what the worker itself reported, if it did
  std::string system;   // "sleeping in nanosleep", stack …; may be empty
  bool asleep = false;  // in a system call other than those that wait for peers, without CPU time
  std::string wrong_data;  // what a check of its results found wrong first; empty: nothing
  // Its TCP sockets; of one that is gone, when they were looked at last. Empty: not looked at.
  std::vector<TcpSocket> sockets;
  // Nine of ten echoes between its agent and the coordinator, over the agents' own connection, came
  // back within this while the sockets were watched; 0: not known.
  double echo_s = 0;
  journal::DeviceMarks device = {};  // how far its device came by its own account
  std::string gpu_bus = {};          // where that device sits; empty: it has none, or did not tell
  std::string gpu = {};              // what the device's driver says of it, in words
  std::string host = {};             // that it runs on; empty: not known
  int pid = 0;                       // of its process there; 0: not known
};

// A communicator beside the world, as the program made it.
struct CommunicatorGroup {
  std::uint16_t communicator = 0;  // disjoint groups may share a number
  std::string name;                // "pair"
  std::vector<int> ranks;
};

// What a judge knows besides the histories.
struct Setting {
  // Silence beyond it makes a suspected hang.
  double deadline_seconds = 30;
  // Whose rules decide what becomes of ranks that call different operations (semantics.h); empty:
  // they are taken to stop.
  std::string backend = {};
  // An operation that does not complete keeps its rank from entering any later one, on whatever
  // communicator: blocking calls, or one stream for all. Without it a cycle is only suspected.
  bool one_stream = false;
  // Ranks go on with calls under way (non-blocking ones): an open call does not tell what its rank
  // waits for, so that a ring of such calls is none. Goes with one_stream = false.
  bool nonblocking_calls = false;
  std::vector<CommunicatorGroup> groups = {};
};

}  // namespace lockstep::verdict
