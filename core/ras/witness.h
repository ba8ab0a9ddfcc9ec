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

}  // namespace lockstep::ras
