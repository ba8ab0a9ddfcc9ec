#include "core/control/roster.h"

#include <algorithm>
#include <map>

namespace lockstep::control {

std::vector<Contact> ChooseCandidates(const std::vector<Contact>& contacts) {
  constexpr int kOfAHost = 2;
  std::map<std::string, int> taken;
  std::vector<Contact> chosen, rest;
  for (const Contact& contact : contacts) {
    if (contact.rank == 0 || contact.address.empty()) continue;
    (++taken[contact.host] <= kOfAHost ? chosen : rest).push_back(contact);
  }
  chosen.insert(chosen.end(), rest.begin(), rest.end());
  if (chosen.size() > kMostCandidates) chosen.resize(kMostCandidates);
  std::ranges::sort(chosen, {}, &Contact::rank);
  return chosen;
}

}  // namespace lockstep::control
