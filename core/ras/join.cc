// Dumps are of one moment in the past and RAS counts launches of now, so neither refutes the other:
// what RAS saw goes on may have hung in another group, or hang later.
#include <algorithm>
#include <utility>

#include "core/ras/witness.h"

namespace lockstep::ras {
namespace {

using verdict::Finding;

bool Blames(const Finding& finding) { return finding.cause != verdict::Cause::kUnknown; }

bool BlamesTheSame(const verdict::Judgement& judgement, const Finding& suspicion) {
  return std::ranges::any_of(judgement.findings, [&](const Finding& one) {
    return Blames(one) && std::ranges::any_of(suspicion.culprits, [&](int rank) {
             return std::ranges::find(one.culprits, rank) != one.culprits.end();
           });
  });
}

// In a judgement whose ranks are numbered otherwise.
void Dissociate(Finding& suspicion) {
  suspicion.culprits.clear();
  suspicion.headline = verdict::Headline("NCCL's RAS, which numbers ranks by communicator: " +
                                         suspicion.headline.text());
}

}  // namespace

void Join(const Testimony& testimony, bool ranks_are_alike, verdict::Judgement& judgement,
          std::vector<std::string>& notes) {
  if (testimony.findings.empty()) notes.push_back("NCCL's RAS: " + testimony.sentence);
  const bool blamed = std::ranges::any_of(judgement.findings,
                                          [](const Finding& finding) { return Blames(finding); });
  std::vector<Finding> added;
  for (Finding suspicion : testimony.findings) {
    if (ranks_are_alike && BlamesTheSame(judgement, suspicion)) {
      notes.push_back("NCCL's RAS suspects the same: " + suspicion.message);
    } else if (blamed) {
      notes.push_back("NCCL's RAS suspects besides: " + suspicion.message);
    } else {
      if (!ranks_are_alike) Dissociate(suspicion);
      suspicion.remedy = "The dumps blame nobody, and RAS proves nothing: look at the process.";
      added.push_back(std::move(suspicion));
    }
  }
  if (added.empty()) return;
  if (judgement.verdict == verdict::Verdict::kPass) judgement.verdict = verdict::Verdict::kUnknown;
  judgement.findings.insert(judgement.findings.begin(), added.begin(), added.end());
}

}  // namespace lockstep::ras
