// The options of a sweep over message sizes and element types, as nccl-tests spells them.
#pragma once

#include <string>
#include <vector>

#include "bench/plan/sizes.h"
#include "core/base/argument_parser.h"
#include "core/base/status.h"
#include "core/collective/data_type.h"

namespace lockstep::bench::measure {

class SweepOptions {
 public:
  void Add(ArgumentParser& parser);
  // Each type once; f32 where none is given.
  Status Read(const ArgumentParser& parser, plan::Sizes& sizes,
              std::vector<collective::DataType>& types) const;
  bool types_given() const { return !types_.empty(); }

 private:
  std::string begin_ = "8", end_ = "64M", step_;
  double factor_ = 2;
  std::vector<std::string> types_;
};

}  // namespace lockstep::bench::measure
