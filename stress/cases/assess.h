// From what became of a case to its verdict: pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/verdict/judge.h"
#include "core/verdict/links/hosts.h"
#include "core/verdict/lost_hosts.h"
#include "stress/cases/catalogue.h"
#include "stress/cases/recovery.h"
#include "stress/scenario/scenario.h"
#include "stress/workloads/program_report.h"

namespace lockstep::stress::cases {

// What a case left behind.
struct CaseFacts {
  std::vector<verdict::RankEvidence> evidence;                   // one a rank
  std::vector<std::optional<workloads::ProgramReport>> reports;  // one a rank
  std::vector<bool> fired;                                       // one a fault
  std::vector<std::string> notes;          // of faults by agents: what was done, or why it was not
  std::vector<journal::Journal> journals;  // for the file
  std::vector<verdict::links::RankHost> hosts = {};  // one a rank; none: not known
  std::optional<double> detected_after_seconds;      // none: nothing was wrong
  double seconds = 0;
  double deadline_seconds = 0;  // by which it was judged
  std::vector<Recovery> recoveries;
  Generation generation;                   // whose evidence it is
  std::vector<verdict::RankPlace> places;  // one a rank, and whose agents are lost; may be empty
  std::string cut_short;  // why it was ended before it was over; empty: it was over
};

struct CaseResult {
  verdict::Verdict verdict = verdict::Verdict::kUnknown;
  std::string why;               // one line; of a pass too: "as expected: …"
  verdict::Judgement judgement;  // of what happened, whether it was expected or not
  CaseFacts facts;
};

// What a judge is to see: a rank whose program is over calls nothing any more, whatever its process
// still does (unless that is the question: `stuck`); what ranks reported is part of the evidence.
// Ranks of `heals` are stopped for now.
std::vector<verdict::RankEvidence> AsJudged(
    std::vector<verdict::RankEvidence> evidence,
    const std::vector<std::optional<workloads::ProgramReport>>& reports,
    const std::vector<bool>& heals, bool stuck);

// What the judge knows besides the histories.
verdict::Setting SettingOf(const scenario::Scenario& scenario, const std::string& backend,
                           double deadline_seconds);

// Judges with the rules of the backend. `deadline_seconds` may be infinite: only what is proved.
verdict::Judgement JudgeCase(const scenario::Scenario& scenario, const std::string& backend,
                             const std::vector<verdict::RankEvidence>& evidence,
                             double deadline_seconds, const Generation& generation = {});

// The expectation for this backend, if there is one; of "sim_gloo" that of "sim", then of "gloo";
// "any" otherwise.
const scenario::Expectation* ExpectationFor(const scenario::Scenario& scenario,
                                            const std::string& backend);

// Takes the facts into the result.
CaseResult Assess(const StressCase& stress_case, const std::string& backend,
                  double deadline_seconds, CaseFacts facts);

}  // namespace lockstep::stress::cases
