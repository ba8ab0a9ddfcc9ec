// How watchers of several hosts find each other: the program's own MPI carries where the first one
// listens.
#ifndef LOCKSTEP_WATCH_PRELOAD_MEETING_H_
#define LOCKSTEP_WATCH_PRELOAD_MEETING_H_

namespace lockstep::watch::preload {

// At the end of MPI_Init, where the watcher asked for it: on all ranks, or on none.
void CarryEndpoint();

}  // namespace lockstep::watch::preload

#endif  // LOCKSTEP_WATCH_PRELOAD_MEETING_H_
