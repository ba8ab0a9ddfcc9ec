// Judgements on the console, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/verdict/judge.h"
#include "core/verdict/trace.h"

namespace lockstep::cli::diagnose {

// "FAIL: rank 1 … was killed …; rank 0 waits for it": who, where, what. "" where nothing was found.
std::string FormatFirstLine(const verdict::Judgement& judgement);
// With its remedy and its evidence; lines begin with `indent`. `label` stands before the cause.
std::string FormatFinding(const verdict::Finding& finding, const std::string& indent,
                          std::string_view label = "");
// The ranks that did not finish, those that ended alike in one line, and each distinct stack once.
std::string FormatOutcomes(const verdict::Judgement& judgement);

// Comma-separated values: the head, and a row a finding; where nothing was found a row with the
// verdict alone. `source`: a file or folder; `of`: a case or lifetime in it.
std::string CsvHead();
std::string CsvRows(const std::string& source, const std::string& of, const std::string& backend,
                    const verdict::Judgement& judgement);

// Of two judgements together: a failure outweighs what nobody knows.
verdict::Verdict Worse(verdict::Verdict a, verdict::Verdict b);

nlohmann::ordered_json ToJson(const verdict::Finding& finding);
nlohmann::ordered_json ToJson(const verdict::RankOutcome& outcome);
nlohmann::ordered_json ToJson(const verdict::Trace& trace);
template <typename T>
nlohmann::ordered_json ToJson(const std::vector<T>& all) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const T& one : all) json.push_back(ToJson(one));
  return json;
}

}  // namespace lockstep::cli::diagnose
