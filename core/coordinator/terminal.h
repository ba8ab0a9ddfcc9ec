// Whether a person looks at what a process of a launch writes.
#ifndef LOCKSTEP_CORE_COORDINATOR_TERMINAL_H_
#define LOCKSTEP_CORE_COORDINATOR_TERMINAL_H_

namespace lockstep::coordinator {

// Stderr is a terminal: our own, or that of the launcher, which forwards ours through a pipe.
bool StderrIsSeen();

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_CORE_COORDINATOR_TERMINAL_H_
