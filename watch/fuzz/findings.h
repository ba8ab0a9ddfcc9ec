// The findings of a random program against what happened in it.
#pragma once

#include <string>
#include <vector>

#include "watch/fuzz/library.h"
#include "watch/fuzz/program.h"
#include "watch/judge/judge.h"

namespace lockstep::watch::fuzz {

// Where it does, the judge takes every call by itself.
inline bool AsksForRaces(const Program& program) { return program.seed % 2 == 0; }

// What is wrong with them ("innocent: ...", "missed: ..."), or "".
std::string WrongAboutFindings(const Program& program, const Library& library,
                               const std::vector<judge::Finding>& findings);

}  // namespace lockstep::watch::fuzz
