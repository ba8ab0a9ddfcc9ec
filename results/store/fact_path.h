// Where a fact of the environment stands in the file.
#ifndef LOCKSTEP_RESULTS_STORE_FACT_PATH_H_
#define LOCKSTEP_RESULTS_STORE_FACT_PATH_H_

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::results::store {

// "host/0/cpu_model" -> groups host, 0 and attribute cpu_model.
struct FactPath {
  std::vector<std::string> groups;
  std::string name;
};

// Empty components and ".", which HDF5 passes over, are dropped; a fact without a name is "value".
FactPath SplitFact(std::string_view fact);

}  // namespace lockstep::results::store

#endif  // LOCKSTEP_RESULTS_STORE_FACT_PATH_H_
