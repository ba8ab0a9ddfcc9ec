// What must be said of a random program, from what its library knows: never from what the judge
// says.
//
//   the program               truth
//   no error                  nobody stuck, at no moment; no finding but races for a wildcard
//   ranks wait for ever       those are stuck, whom no rank that polls can free. Said of nobody
//   else,
//                             at no moment, whatever the schedule does next. One finding: its ranks
//                             wait for each other, or for a rank that is over; the guilty one is
//                             among them. A message that would fit but for its tag or communicator
//                             is named
//   a message nobody took,    by the lines of the program, each
//   a request not awaited,
//   types, room, races
//   calls that differ         the rank that errs is among the culprits
//   a rank dies               that rank
//
// Where a wildcard took a message and its rank was not told which, nobody can say who still waits:
// `unknown` is right then.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "watch/fuzz/program.h"
#include "watch/judge/judge.h"

namespace lockstep::watch::fuzz {

// What a judge says: who is stuck (asked at many moments), and the findings at the end.
struct Verdict {
  std::set<int> stuck;
  bool soft = false;
  std::vector<judge::Finding> findings;
};
using Spoil = std::function<void(Verdict&)>;  // makes a judge that errs

struct Assessment {
  std::string wrong;  // "": the verdict is right; else a kind ("innocent: …") and why
  bool hangs = false;
  bool unknown = false;  // ranks are stuck, and nobody can know
  bool found = false;    // a finding was told
};

Assessment Assess(const Program& program, const Spoil& spoil = {});

}  // namespace lockstep::watch::fuzz
