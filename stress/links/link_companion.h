// What works beside a worker whose links may be made bad: a relay (relay.h), steered by the
// conductor's LinkDirector.
#ifndef LOCKSTEP_STRESS_LINKS_LINK_COMPANION_H_
#define LOCKSTEP_STRESS_LINKS_LINK_COMPANION_H_

#include "core/launch/companion.h"

namespace lockstep {

// For FleetOptions::companion.
std::unique_ptr<Companion> MakeLinkCompanion(int rank);

}  // namespace lockstep

#endif  // LOCKSTEP_STRESS_LINKS_LINK_COMPANION_H_
