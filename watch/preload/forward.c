#include "watch/preload/forward.h"

struct Ending {
  LockstepLeft left;
  void* about;
  int threw;
};

static void End(struct Ending* ending) { ending->left(ending->about, ending->threw); }

long LockstepForward(LockstepFunction function, void* const arguments[5], LockstepLeft left,
                     void* about) {
  __attribute__((cleanup(End))) struct Ending ending = {left, about, 1};
  const long result =
      function(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
  ending.threw = 0;
  return result;
}
