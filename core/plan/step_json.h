// Steps and models as parts of a plan's JSON. Reading throws nlohmann's exceptions.
#ifndef LOCKSTEP_CORE_PLAN_STEP_JSON_H_
#define LOCKSTEP_CORE_PLAN_STEP_JSON_H_

#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/plan/plan.h"

namespace lockstep::plan {

using Json = nlohmann::ordered_json;

Json ToJson(const PlannedModel& model);
Result<PlannedModel> ModelFrom(const Json& json);

// The members that only cases with a step have; nothing for plain collectives.
void AddStepJson(const PlannedCase& planned, Json& json);
Status ReadStepJson(const Json& json, PlannedCase& planned);

}  // namespace lockstep::plan

#endif  // LOCKSTEP_CORE_PLAN_STEP_JSON_H_
