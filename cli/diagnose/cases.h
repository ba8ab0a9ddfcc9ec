// What of a stored run is diagnosed one by one: the cases of a stress run, of others the lifetimes
// of the workers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/verdict/judge.h"
#include "results/store/run.h"
#include "stress/scenario/scenario.h"

namespace lockstep::cli::diagnose {

struct StoredCase {
  int lifetime = 0;
  const results::store::CaseRecord* record =
      nullptr;  // nullptr: a lifetime, which several cases can share
  std::vector<verdict::RankEvidence> evidence;
  bool whole = false;  // the evidence is what the run's judge had; otherwise what journals tell
  verdict::Setting setting;
  std::optional<stress::scenario::Scenario> scenario = std::nullopt;
  const verdict::Judgement* stored = nullptr;  // nullptr: the run judged no such lifetime
};

// Points into `run`. kInvalidInput without a history.
Result<std::vector<StoredCase>> StoredCasesOf(const results::store::Run& run,
                                              const std::string& path);

// By the setting, as the run's judge would.
verdict::Judgement JudgeAgain(const StoredCase& stored_case);

// The run's own findings and outcomes. Where `again` found the same, it adds what a file has no
// place for: the collective in question and the general findings that a specific one explains.
verdict::Judgement AsStored(const StoredCase& stored_case, const verdict::Judgement& again);

}  // namespace lockstep::cli::diagnose
