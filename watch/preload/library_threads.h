// Which threads of this process are MPI's own: those that its MPI_Init began.
#pragma once

namespace lockstep::watch::preload {

// True where the calling thread is the only one of this process.
bool IsOnlyThread();
// All threads but the calling one are the library's. More than the segment has room for: none is.
void NoteLibraryThreads();

}  // namespace lockstep::watch::preload
