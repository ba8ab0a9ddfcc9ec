// A call of a C++ library that may throw. It is made in C, whose clean-up needs no C++ runtime:
// this library is also loaded into programs that have none.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Of up to five pointers or integers, as their calling convention takes them.
typedef long (*LockstepFunction)(void*, void*, void*, void*, void*);
typedef void (*LockstepLeft)(void* about, int threw);

// function(arguments), then left(about, whether it threw). An exception goes on. What the function
// returned, if it returns something: of a bool the low byte alone.
long LockstepForward(LockstepFunction function, void* const arguments[5], LockstepLeft left,
                     void* about);

#ifdef __cplusplus
}
#endif
