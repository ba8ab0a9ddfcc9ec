// Windows and files as far as their calls are collective; of one-sided calls, the arguments.
#include "watch/preload/watched.h"

#define LOCKSTEP_MAKES_WINDOW(NAME, PARAMS, ARGUMENTS)             \
  LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, call.Collective(comm), \
                   if (result == MPI_SUCCESS)                      \
                       preload::MadeWindow(comm, *made, events::Call::k##NAME, call.site()))
LOCKSTEP_MAKES_WINDOW(Win_create,
                      (void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm,
                       MPI_Win* made),
                      (base, size, unit, info, comm, made))
LOCKSTEP_MAKES_WINDOW(Win_allocate,
                      (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                       MPI_Win* made),
                      (size, unit, info, comm, base, made))
LOCKSTEP_MAKES_WINDOW(Win_allocate_shared,
                      (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                       MPI_Win* made),
                      (size, unit, info, comm, base, made))
LOCKSTEP_MAKES_WINDOW(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win* made),
                      (info, comm, made))
LOCKSTEP_WATCHED(Win_fence, (int assert, MPI_Win window), (assert, window),
                 call.OnComm(preload::WindowOf(window)), )
LOCKSTEP_WATCHED(Win_free, (MPI_Win * window), (window), const MPI_Win kept = *window;
                 call.OnComm(preload::WindowOf(kept)),
                 if (result == MPI_SUCCESS) preload::FreedWindow(kept, call.site()))

#define LOCKSTEP_ONE_SIDED                \
  call.OnComm(preload::WindowOf(window)); \
  call.Data(count, type);                 \
  call.Data2(there_count, there_type)
LOCKSTEP_WATCHED(Put,
                 (const void* data, int count, MPI_Datatype type, int target, MPI_Aint place,
                  int there_count, MPI_Datatype there_type, MPI_Win window),
                 (data, count, type, target, place, there_count, there_type, window),
                 LOCKSTEP_ONE_SIDED, )
LOCKSTEP_WATCHED(Get,
                 (void* data, int count, MPI_Datatype type, int target, MPI_Aint place,
                  int there_count, MPI_Datatype there_type, MPI_Win window),
                 (data, count, type, target, place, there_count, there_type, window),
                 LOCKSTEP_ONE_SIDED, )
LOCKSTEP_WATCHED(Accumulate,
                 (const void* data, int count, MPI_Datatype type, int target, MPI_Aint place,
                  int there_count, MPI_Datatype there_type, MPI_Op op, MPI_Win window),
                 (data, count, type, target, place, there_count, there_type, op, window),
                 LOCKSTEP_ONE_SIDED, )

LOCKSTEP_WATCHED(File_open,
                 (MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* made),
                 (comm, name, mode, info, made), call.Collective(comm),
                 if (result == MPI_SUCCESS)
                     preload::MadeFile(comm, *made, events::Call::kFile_open, call.site()))
LOCKSTEP_WATCHED(File_close, (MPI_File * file), (file), const MPI_File kept = *file;
                 call.OnComm(preload::FileOf(kept)),
                 if (result == MPI_SUCCESS) preload::FreedFile(kept, call.site()))
LOCKSTEP_WATCHED(File_write_all,
                 (MPI_File file, const void* data, int count, MPI_Datatype type,
                  MPI_Status* status),
                 (file, data, count, type, status), call.OnComm(preload::FileOf(file)), )
LOCKSTEP_WATCHED(File_read_all,
                 (MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status),
                 (file, data, count, type, status), call.OnComm(preload::FileOf(file)), )
LOCKSTEP_WATCHED(File_write_at_all,
                 (MPI_File file, MPI_Offset place, const void* data, int count, MPI_Datatype type,
                  MPI_Status* status),
                 (file, place, data, count, type, status), call.OnComm(preload::FileOf(file)), )
LOCKSTEP_WATCHED(File_read_at_all,
                 (MPI_File file, MPI_Offset place, void* data, int count, MPI_Datatype type,
                  MPI_Status* status),
                 (file, place, data, count, type, status), call.OnComm(preload::FileOf(file)), )
LOCKSTEP_WATCHED(File_set_view,
                 (MPI_File file, MPI_Offset place, MPI_Datatype element, MPI_Datatype type,
                  const char* format, MPI_Info info),
                 (file, place, element, type, format, info), call.OnComm(preload::FileOf(file)), )
