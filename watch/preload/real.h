// The library's own functions, found once each, by name.
#pragma once

#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(FindFunction(name));
}

}  // namespace lockstep::watch::preload
