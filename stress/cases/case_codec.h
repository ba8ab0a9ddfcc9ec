// What became of a case, as bytes: the coordinator replicates them to those who may succeed it, so
// that no verdict is lost with its host (Coordinator::Replicate).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "stress/cases/assess.h"

namespace lockstep::stress::cases {

struct ReplicatedCase {
  std::size_t index = 0;  // of the launch's cases
  CaseResult result;      // without journals; of those in the evidence the newest 64 events
};

std::string EncodeCase(std::size_t index, const CaseResult& result);
std::optional<ReplicatedCase> DecodeCase(std::string_view bytes);

}  // namespace lockstep::stress::cases
