// Windows: what is collective, epochs of some members, and locks. Of one-sided calls, the
// arguments. Files as far as their calls are collective.
#include "watch/preload/callers.h"
#include "watch/preload/watched.h"

namespace lockstep::watch::preload {

#define LOCKSTEP_MAKES_WINDOW(DEFINE, NAME, PARAMS, ARGUMENTS) \
  DEFINE(NAME, PARAMS, ARGUMENTS, call.Collective(comm),       \
         if (result == kMpiSuccess) MadeWindow(comm, *made, events::Call::k##NAME, call.site()))
LOCKSTEP_MAKES_WINDOW(LOCKSTEP_SIZED, Win_create,
                      (void* base, Aint size, Place unit, Handle info, Handle comm, Handles made),
                      (base, size, unit, info, comm, made))
LOCKSTEP_MAKES_WINDOW(LOCKSTEP_SIZED, Win_allocate,
                      (Aint size, Place unit, Handle info, Handle comm, void* base, Handles made),
                      (size, unit, info, comm, base, made))
LOCKSTEP_MAKES_WINDOW(LOCKSTEP_SIZED, Win_allocate_shared,
                      (Aint size, Place unit, Handle info, Handle comm, void* base, Handles made),
                      (size, unit, info, comm, base, made))
LOCKSTEP_MAKES_WINDOW(LOCKSTEP_WATCHED, Win_create_dynamic,
                      (Handle info, Handle comm, Handles made), (info, comm, made))
LOCKSTEP_WATCHED(Win_fence, (int assert, Handle window), (assert, window),
                 call.OnComm(WindowOf(window)), )
LOCKSTEP_WATCHED(Win_free, (Handles window), (window),
                 const Known held = Held(events::Object::kWindow, (*window).Bits());
                 call.OnComm(WindowOf(*window)),
                 if (result == kMpiSuccess) Freed(events::Object::kWindow, held, call.site()))

namespace {

// The members of `group`, before they are named in the call.
void WithGroup(Watched& call, Handle window, Handle group) {
  call.OnComm(WindowOf(window));
  ForEachInWorld(group, [&call](int rank) {
    if (rank != kMpiUndefined) call.NeedsPart(rank);
  });
}

// `assert`: where nobody else may want it, there is no lock.
void Locks(Watched& call, int assert, std::int32_t target, bool exclusive, Handle window) {
  call.OnComm(assert == 0 ? WindowOf(window) : events::kUnknownComm);
  call.At(target, exclusive ? events::kExclusive : 0);
}

}  // namespace

LOCKSTEP_WATCHED(Win_post, (Handle group, int assert, Handle window), (group, assert, window),
                 WithGroup(call, window, group), )
LOCKSTEP_WATCHED(Win_start, (Handle group, int assert, Handle window), (group, assert, window),
                 WithGroup(call, window, group), )
LOCKSTEP_WATCHED(Win_complete, (Handle window), (window), call.OnComm(WindowOf(window)), )
LOCKSTEP_WATCHED(Win_wait, (Handle window), (window), call.OnComm(WindowOf(window)), )
LOCKSTEP_POLLED(Win_test, (Handle window, int* flag), (window, flag), call.OnComm(WindowOf(window)),
                *flag, )
LOCKSTEP_WATCHED(Win_lock, (int type, int target, int assert, Handle window),
                 (type, target, assert, window),
                 Locks(call, assert, target, type == abi.lock_exclusive, window), )
LOCKSTEP_WATCHED(Win_lock_all, (int assert, Handle window), (assert, window),
                 Locks(call, assert, events::kNoRoot, false, window), )
#define LOCKSTEP_OF_LOCK(NAME)                                          \
  LOCKSTEP_WATCHED(NAME, (int target, Handle window), (target, window), \
                   Locks(call, 0, target, false, window), )
#define LOCKSTEP_OF_LOCKS(NAME) \
  LOCKSTEP_WATCHED(NAME, (Handle window), (window), call.OnComm(WindowOf(window)), )
LOCKSTEP_OF_LOCK(Win_unlock)
LOCKSTEP_OF_LOCK(Win_flush)
LOCKSTEP_OF_LOCK(Win_flush_local)
LOCKSTEP_OF_LOCKS(Win_unlock_all)
LOCKSTEP_OF_LOCKS(Win_flush_all)
LOCKSTEP_OF_LOCKS(Win_flush_local_all)

#define LOCKSTEP_ONE_SIDED       \
  call.OnComm(WindowOf(window)); \
  call.Data(count, type);        \
  call.Data2(there_count, there_type)
LOCKSTEP_SIZED(Put,
               (const void* data, Count count, Handle type, int target, Aint place,
                Count there_count, Handle there_type, Handle window),
               (data, count, type, target, place, there_count, there_type, window),
               LOCKSTEP_ONE_SIDED, )
LOCKSTEP_SIZED(Get,
               (void* data, Count count, Handle type, int target, Aint place, Count there_count,
                Handle there_type, Handle window),
               (data, count, type, target, place, there_count, there_type, window),
               LOCKSTEP_ONE_SIDED, )
LOCKSTEP_SIZED(Accumulate,
               (const void* data, Count count, Handle type, int target, Aint place,
                Count there_count, Handle there_type, Handle op, Handle window),
               (data, count, type, target, place, there_count, there_type, op, window),
               LOCKSTEP_ONE_SIDED, )

LOCKSTEP_WATCHED(File_open,
                 (Handle comm, const char* name, int mode, Handle info, FileHandle* made),
                 (comm, name, mode, info, made), call.Collective(comm);
                 uses_files = true,
                 if (result == kMpiSuccess)
                     MadeFile(comm, *made, events::Call::kFile_open, call.site()))
LOCKSTEP_WATCHED(File_delete, (const char* name, Handle info), (name, info), uses_files = true, )
LOCKSTEP_WATCHED(File_close, (FileHandle * file), (file),
                 const Known held = Held(events::Object::kFile, *file);
                 call.OnComm(FileOf(*file)),
                 if (result == kMpiSuccess) Freed(events::Object::kFile, held, call.site()))
LOCKSTEP_SIZED(File_write_all,
               (FileHandle file, const void* data, Count count, Handle type, Statuses status),
               (file, data, count, type, status), call.OnComm(FileOf(file)), )
LOCKSTEP_SIZED(File_read_all,
               (FileHandle file, void* data, Count count, Handle type, Statuses status),
               (file, data, count, type, status), call.OnComm(FileOf(file)), )
LOCKSTEP_SIZED(File_write_at_all,
               (FileHandle file, Offset place, const void* data, Count count, Handle type,
                Statuses status),
               (file, place, data, count, type, status), call.OnComm(FileOf(file)), )
LOCKSTEP_SIZED(File_read_at_all,
               (FileHandle file, Offset place, void* data, Count count, Handle type,
                Statuses status),
               (file, place, data, count, type, status), call.OnComm(FileOf(file)), )
LOCKSTEP_WATCHED(File_set_view,
                 (FileHandle file, Offset place, Handle element, Handle type, const char* format,
                  Handle info),
                 (file, place, element, type, format, info), call.OnComm(FileOf(file)), )

}  // namespace lockstep::watch::preload
