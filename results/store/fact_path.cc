#include "results/store/fact_path.h"

namespace lockstep::results::store {

FactPath SplitFact(std::string_view fact) {
  FactPath path;
  const std::size_t slash = fact.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? fact : fact.substr(slash + 1);
  path.name = name.empty() ? "value" : name;
  std::string_view rest = slash == std::string_view::npos ? "" : fact.substr(0, slash);
  while (!rest.empty()) {
    const std::string_view group = rest.substr(0, rest.find('/'));
    if (!group.empty() && group != ".") path.groups.emplace_back(group);
    rest.remove_prefix(group.size() == rest.size() ? rest.size() : group.size() + 1);
  }
  return path;
}

}  // namespace lockstep::results::store
