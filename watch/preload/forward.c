#include "watch/preload/forward.h"

struct Ending {
  LockstepLeft left;
  void* about;
  int threw;
};

static void End(struct Ending* ending) { ending->left(ending->about, ending->threw); }

void LockstepForward(LockstepFunction function, void* first, void* second, void* third,
                     LockstepLeft left, void* about) {
  __attribute__((cleanup(End))) struct Ending ending = {left, about, 1};
  function(first, second, third);
  ending.threw = 0;
}
