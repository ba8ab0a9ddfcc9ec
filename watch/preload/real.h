// The library's own functions, found once each, by name.
#pragma once

#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(FindFunction(name));
}

// What the dynamic linker asks before a sanitizer is ready.
#define LOCKSTEP_UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

// Whether the library has this function. Where the dynamic linker asks for an object that it binds
// before this library (MPI's own, or a library of the program), the answer is yes: nothing can be
// looked up yet.
bool MayHave(const char* name);

}  // namespace lockstep::watch::preload
