// Steps and models as parts of a plan's JSON. Reading throws nlohmann's exceptions.
#ifndef LOCKSTEP_BENCH_PLAN_STEP_JSON_H_
#define LOCKSTEP_BENCH_PLAN_STEP_JSON_H_

#include <nlohmann/json.hpp>

#include "bench/plan/plan.h"
#include "core/base/status.h"

namespace lockstep::bench::plan {

using Json = nlohmann::ordered_json;

Json ToJson(const PlannedModel& model);
Result<PlannedModel> ModelFrom(const Json& json);

// The members that only cases with a step have; nothing for plain collectives.
void AddStepJson(const PlannedCase& planned, Json& json);
Status ReadStepJson(const Json& json, PlannedCase& planned);

}  // namespace lockstep::bench::plan

#endif  // LOCKSTEP_BENCH_PLAN_STEP_JSON_H_
