// From the words of nccl-tests' options to sizes and types. Errors name the option.
#include "bench/measure/sweep_options.h"

#include "bench/measure/option_values.h"
#include "core/base/units.h"

namespace lockstep::bench::measure {
namespace {

// "all" are those that every library and every GPU reduces, so that it is the same everywhere:
// floats of 8 bits are named.
Result<std::vector<collective::DataType>> ReadTypes(const std::vector<std::string>& words) {
  std::vector<collective::DataType> types;
  for (const std::string& word : words) {
    if (word == "all") {
      for (const collective::DataType type : collective::AllDataTypes()) {
        if (!collective::IsFloat8(type)) PutOnce(type, types);
      }
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const collective::DataType type,
                              collective::ParseDataType("-d", word));
    PutOnce(type, types);
  }
  return types;
}

}  // namespace

void SweepOptions::Add(ArgumentParser& parser) {
  parser.Add("-b,--minbytes=BYTES", begin_, "Smallest size").ShowDefault();
  parser.Add("-e,--maxbytes=BYTES", end_, "Largest size").ShowDefault();
  parser.Add("-i,--stepbytes=BYTES", step_, "Add this to the size instead of multiplying");
  parser.Add("-f,--stepfactor=FACTOR", factor_, "Multiply the size by this").ShowDefault();
  parser
      .Add("-d,--datatype=WORD", types_,
           "Element types (f16 bf16 f32 f64 i8 i32 i64 u8, or all of these, f8e4m3 f8e5m2; default "
           "f32)")
      .SplitAtCommas();
}

Status SweepOptions::Read(const ArgumentParser& parser, plan::Sizes& sizes,
                          std::vector<collective::DataType>& types) const {
  LOCKSTEP_ASSIGN_OR_RETURN(sizes.begin_bytes, ParseBytes("-b", begin_));
  LOCKSTEP_ASSIGN_OR_RETURN(sizes.end_bytes, ParseBytes("-e", end_));
  if (!step_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(sizes.step_bytes, ParseBytes("-i", step_));
    if (sizes.step_bytes == 0) return InvalidInput("-i 0: the step must be positive");
    if (parser.Given("-f")) {
      return InvalidInput("-i {} and -f {}: sizes grow by a step or by a factor; leave one out",
                          step_, factor_);
    }
  }
  sizes.factor = factor_;
  types = {collective::DataType::kF32};
  if (types_given()) {
    LOCKSTEP_ASSIGN_OR_RETURN(types, ReadTypes(types_));
  }
  return OkStatus();
}

}  // namespace lockstep::bench::measure
