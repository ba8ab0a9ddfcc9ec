// The rank of a process that no MPI_Init says.
#pragma once

namespace lockstep::watch::preload {

// What the launcher says: torchrun's variables, or those of mpirun or srun. False: nothing.
bool LaunchedAs(int* rank, int* size);

// Makes the segment of this process, unless there is one. Ranks that torchrun or a hand starts meet
// at an address of their own, which names the job; others are named by `else_by`.
bool BeginWatching(int rank, int size, const char* else_by);

}  // namespace lockstep::watch::preload
