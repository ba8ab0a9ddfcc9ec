#include "core/control/roster.h"

#include <algorithm>
#include <map>

#include "core/control/codec.h"
#include "core/control/protocol.h"

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
  std::sort(chosen.begin(), chosen.end(),
            [](const Contact& a, const Contact& b) { return a.rank < b.rank; });
  return chosen;
}

std::string EncodeRoster(const Roster& roster, bool with_agents) {
  Encoder encoder;
  encoder.Put(roster.lost_seconds);
  encoder.Put(static_cast<std::uint32_t>(roster.candidates.size()));
  for (const Contact& contact : roster.candidates) {
    encoder.Put(std::int32_t{contact.rank}).Text(contact.host).Text(contact.address);
    encoder.Put(contact.port);
  }
  encoder.Put(static_cast<std::uint32_t>(with_agents ? roster.agents.size() : 0));
  if (with_agents) {
    for (const AgentInfo& agent : roster.agents) Put(encoder, agent);
  }
  return encoder.Take();
}

std::optional<Roster> DecodeRoster(std::string_view bytes) {
  Decoder decoder(bytes);
  Roster roster;
  roster.lost_seconds = decoder.Get<double>();
  const auto candidates = decoder.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < candidates && decoder.ok(); ++i) {
    Contact& contact = roster.candidates.emplace_back();
    contact.rank = decoder.Get<std::int32_t>();
    contact.host = decoder.Text();
    contact.address = decoder.Text();
    contact.port = decoder.Get<std::uint16_t>();
  }
  const auto agents = decoder.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < agents && decoder.ok(); ++i) {
    if (!Get(decoder, roster.agents.emplace_back())) break;
  }
  if (!decoder.complete()) return std::nullopt;
  return roster;
}

}  // namespace lockstep::control
