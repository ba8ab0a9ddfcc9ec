// Links between hosts: whose clocks need not agree, and which may have more than one rank.
#pragma once

#include <string>
#include <vector>

#include "core/verdict/evidence.h"
#include "core/verdict/outcome.h"

namespace lockstep::verdict::links {

// Where a rank runs.
struct RankHost {
  std::string name;
  std::string clock;  // the same: a common clock (the identity of the booted kernel)
};

// Sets the times at which bytes were written and came to a clock that both ends of each connection
// share: so that bytes were equally long on the way in both directions. The sum of both directions
// stays what it was, whatever the clocks show; of a link that is slow in one direction each gets
// half. Only of ends whose clocks differ; `hosts`: one a rank, or none.
void AlignClocks(const std::vector<RankHost>& hosts, std::vector<RankEvidence>& evidence);

// To findings about links between hosts (transport_stall, init_failure, slow_link, rank_failed)
// adds which hosts they are between; culprits are then all ends of these links, or, where all links
// are of one host, the ranks there. `hosts`: one a rank, or none.
void NameHosts(const std::vector<RankEvidence>& evidence, const std::vector<RankHost>& hosts,
               Judgement& judgement);

}  // namespace lockstep::verdict::links
