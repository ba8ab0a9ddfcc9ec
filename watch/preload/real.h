// The library's own functions, found once each, by name.
#pragma once

#include <atomic>

#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {

// What `find`, a closure of the caller's own, finds; kept from the first call on. Threads may make
// that at once: all find the same.
[[gnu::always_inline]] inline auto FoundOnce(auto find) {
  static constinit std::atomic<decltype(find())> kept = nullptr;
  auto function = kept.load(std::memory_order_relaxed);
  if (!function) kept.store(function = find(), std::memory_order_relaxed);
  return function;
}

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
