// The library's own functions, found once each, by name.
#ifndef LOCKSTEP_WATCH_PRELOAD_REAL_H_
#define LOCKSTEP_WATCH_PRELOAD_REAL_H_

#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(FindFunction(name));
}

}  // namespace lockstep::watch::preload

#endif  // LOCKSTEP_WATCH_PRELOAD_REAL_H_
