// Whether a person looks at what a process of a launch writes.
#ifndef LOCKSTEP_CORE_LAUNCH_TERMINAL_H_
#define LOCKSTEP_CORE_LAUNCH_TERMINAL_H_

namespace lockstep::launch {

// Stderr is a terminal: our own, or that of the launcher, which forwards ours through a pipe.
bool StderrIsSeen();

}  // namespace lockstep::launch

#endif  // LOCKSTEP_CORE_LAUNCH_TERMINAL_H_
