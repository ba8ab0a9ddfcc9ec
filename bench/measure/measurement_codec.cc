#include "bench/measure/measurement_codec.h"

#include "core/control/codec.h"
#include "core/control/records.h"

namespace lockstep::bench::measure {

void Describe(auto& fields, control::Is<LocatedWrong> auto& wrong) {
  fields(wrong.rank, wrong.iteration, wrong.operation, wrong.element, wrong.expected, wrong.got);
}
void Describe(auto& fields, control::Is<DataChecks> auto& data) {
  fields(data.checked, data.wrong_elements, data.wrong);
}
void Describe(auto& fields, control::Is<RepetitionEnd> auto& end) { fields(end.rounds, end.data); }
void Describe(auto& fields, control::Is<Interruption> auto& interruption) {
  fields(interruption.case_index, interruption.repetition, interruption.lifetime);
  fields(interruption.judgement);
}
void Describe(auto& fields, control::Is<Measurement> auto& measurement) {
  fields(measurement.stopped_by, measurement.ends, measurement.interruptions);
  fields.Require(measurement.stopped_by.size() == measurement.ends.size());
}

std::string EncodeMeasurement(const Measurement& measurement) {
  return control::Encode(measurement);
}

std::optional<Measurement> DecodeMeasurement(std::string_view bytes) {
  return control::Decode<Measurement>(bytes);
}

}  // namespace lockstep::bench::measure
