// The trials of a stress run as a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "results/store/run.h"

namespace lockstep::results::report {

// A row a trial: scenario, what became of the ranks, the first finding, the verdict; below the
// table a line a trial that passed: why. Cases that are no trials are left out; empty when none is
// one.
std::string FormatTrials(const std::vector<store::CaseRecord>& cases);

// Of a trial that did not pass: why, the findings with their remedies, the faults.
std::string FormatTrialDetails(const store::CaseRecord& record);

// A failure outweighs an unknown one; unknown when fewer than `planned` were run.
verdict::Verdict VerdictOf(const std::vector<store::CaseRecord>& cases, std::size_t planned);

// "1 of 6 cases; uneven_inputs/case2: …": what is wrong, with whom; one line for Run::summary_line.
std::string SummaryLineOf(const std::vector<store::CaseRecord>& cases, std::size_t planned);

}  // namespace lockstep::results::report
