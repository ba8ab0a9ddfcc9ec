// A call of a C++ library that may throw. It is made in C, whose clean-up needs no C++ runtime:
// this library is also loaded into programs that have none.
#ifndef LOCKSTEP_WATCH_PRELOAD_FORWARD_H_
#define LOCKSTEP_WATCH_PRELOAD_FORWARD_H_

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*LockstepFunction)(void*, void*, void*);
typedef void (*LockstepLeft)(void* about, int threw);

// function(first, second, third), then left(about, whether it threw). An exception goes on.
void LockstepForward(LockstepFunction function, void* first, void* second, void* third,
                     LockstepLeft left, void* about);

#ifdef __cplusplus
}
#endif

#endif  // LOCKSTEP_WATCH_PRELOAD_FORWARD_H_
