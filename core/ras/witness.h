// What two looks at a job by NCCL's RAS let one suspect. RAS counts launches and answers from
// threads of its own: it says nothing of a rank that waits inside a collective, and "OK" of a job
// whose ranks all do. So nothing is proved by it, and what it suspects stays a suspicion.
#pragma once

#include <string>
#include <vector>

#include "core/ras/status.h"
#include "core/verdict/outcome.h"

namespace lockstep::ras {

struct Testimony {
  // kPass: operations were launched between the looks. Else kUnknown, whatever is suspected.
  verdict::Verdict verdict = verdict::Verdict::kUnknown;
  std::vector<verdict::Finding> findings;  // culprits: ranks of their communicator; none proved
  std::string sentence;                    // what is known when there is no finding
};

// `first` and `second` in order of time, long enough apart for a step of training.
Testimony Hear(const JobStatus& first, const JobStatus& second);

// One judgement of a job from its Flight Recorder's dumps and from RAS: the dumps prove, and RAS
// only adds. `judgement`: of the dumps. What these blame somebody for stays the verdict, and RAS
// becomes notes: it agrees, it suspects others besides, or it saw nothing. Where the dumps blame
// nobody, what RAS suspects comes first, and a verdict that all is well becomes unknown.
// `ranks_are_alike`: RAS numbers ranks as the dumps do, because both know one group; otherwise
// ranks can't be compared.
void Join(const Testimony& testimony, bool ranks_are_alike, verdict::Judgement& judgement,
          std::vector<std::string>& notes);

}  // namespace lockstep::ras
