// The rank of a process that no MPI_Init says.
#ifndef LOCKSTEP_WATCH_PRELOAD_WORLD_H_
#define LOCKSTEP_WATCH_PRELOAD_WORLD_H_

namespace lockstep::watch::preload {

// What the launcher says: torchrun's variables, or those of mpirun or srun. False: nothing.
bool LaunchedAs(int* rank, int* size);

// Makes the segment of this process, unless there is one. Ranks that torchrun or a hand starts meet
// at an address of their own, which names the job; others are named by `else_by`.
bool BeginWatching(int rank, int size, const char* else_by);

}  // namespace lockstep::watch::preload

#endif  // LOCKSTEP_WATCH_PRELOAD_WORLD_H_
