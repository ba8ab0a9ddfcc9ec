// The library's own functions, found once each, by name.
#pragma once

#include <atomic>

#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {

// A function that is looked up by whoever needs it first. Threads may do so at once: all find the
// same.
template <typename Function>
class FoundOnce {
 public:
  template <typename Find>
  [[gnu::always_inline]] Function* Get(Find find) {
    Function* function = function_.load(std::memory_order_relaxed);
    if (!function) function_.store(function = find(), std::memory_order_relaxed);
    return function;
  }

 private:
  std::atomic<Function*> function_ = nullptr;
};

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
