// One judgement of a job from its Flight Recorder's dumps and from NCCL's RAS: the dumps prove, and
// RAS only adds.
#pragma once

#include <string>
#include <vector>

#include "core/ras/witness.h"
#include "core/verdict/outcome.h"

namespace lockstep::ras {

// `judgement`: of the dumps. What these blame somebody for stays the verdict, and RAS becomes
// notes: it agrees, it suspects others besides, or it saw nothing. Where the dumps blame nobody,
// what RAS suspects comes first, and a verdict that all is well becomes unknown. `ranks_are_alike`:
// RAS numbers ranks as the dumps do, because both know one group; otherwise ranks can't be
// compared.
void Join(const Testimony& testimony, bool ranks_are_alike, verdict::Judgement& judgement,
          std::vector<std::string>& notes);

}  // namespace lockstep::ras
