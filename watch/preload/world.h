// What the launcher says of a process: its rank, where no MPI_Init says it, and its launch.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace lockstep::watch::preload {

// What the launcher says: torchrun's variables, or those of mpirun or srun. False: nothing.
bool LaunchedAs(int* rank, int* size);

// Makes the segment of this process, unless there is one. Ranks that torchrun or a hand starts meet
// at an address of their own, which names the job; others are named by `else_by`.
bool BeginWatching(int rank, int size, const char* else_by);

// What follows the word `option` in `words`, which end in a zero each; null: nothing.
inline const char* WordAfter(const char* option, const char* words, std::size_t length) {
  bool found = false;
  for (std::size_t at = 0; at < length; at += std::strlen(words + at) + 1) {
    if (found) return words + at;
    found = std::strcmp(words + at, option) == 0;
  }
  return nullptr;
}

// Which launch a process of MPICH's mpiexec (Hydra) belongs to: no variable names it.
// `words`: the command line of the proxy that started the process, with a zero behind it. All
// proxies of an mpiexec have the address of its control port, on all hosts; those of a group that
// MPI_Comm_spawn started have another --pgid. False: it is no such proxy.
inline bool NameOfLaunch(const char* words, std::size_t length, char* name, std::size_t room) {
  const char* const port = WordAfter("--control-port", words, length);
  const char* const group = WordAfter("--pgid", words, length);
  if (!port) return false;
  std::snprintf(name, room, "%s/%s", port, group ? group : "0");
  return true;
}

}  // namespace lockstep::watch::preload
