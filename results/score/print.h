// A scoreboard as text and as JSON.
#pragma once

#include <string>

#include "results/score/trials.h"

namespace lockstep::results::score {

// One line to quote: "PASS: 96 of 96 faults found, cause right in 96 of 96, …".
std::string HeadlineOf(const Scoreboard& board);
// The headline, a row a cause and certainty, then each trial that was wrong or says nothing.
std::string FormatScoreTable(const Scoreboard& board);
// {"schema": 1, "headline": …, "verdict": …, "rows": […], "wrong": […], "unknown": […]}.
std::string FormatScoreJson(const Scoreboard& board);

}  // namespace lockstep::results::score
