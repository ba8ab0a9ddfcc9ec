// Orders as lines of text, and back.
#include "stress/run/protocol.h"

#include <nlohmann/json.hpp>

namespace lockstep::stress::run {
namespace {

using Json = nlohmann::ordered_json;

template <typename Fill>
auto Decode(const std::string& payload, Fill fill) -> Result<decltype(fill(Json()))> {
  const Json json = Json::parse(payload, nullptr, false);
  try {
    return fill(json);
  } catch (const Json::exception& error) {
    return SystemFailed(std::string("a message of a worker makes no sense: ") + error.what());
  }
}

Json JsonOf(const Membership& membership) {
  return {{"generation", membership.generation},
          {"rank", membership.rank},
          {"size", membership.size},
          {"first_iteration", membership.first_iteration},
          {"members", membership.members},
          {"fired", membership.fired}};
}

Membership MembershipOf(const Json& json) {
  return {json.at("generation").get<int>(),
          json.at("rank").get<int>(),
          json.at("size").get<int>(),
          json.at("first_iteration").get<std::int64_t>(),
          json.at("members").get<std::vector<int>>(),
          json.at("fired").get<std::vector<std::int64_t>>()};
}

}  // namespace

std::string EncodeMembership(const Membership& membership) { return JsonOf(membership).dump(); }

Result<Membership> DecodeMembership(const std::string& payload) {
  return Decode(payload, [](const Json& json) { return MembershipOf(json); });
}

std::string EncodeOrder(const CaseOrder& order) {
  return Json({{"origin", order.origin},
               {"text", order.text},
               {"ranks", order.ranks},
               {"backend", order.backend},
               {"seed", order.seed},
               {"membership", JsonOf(order.membership)}})
      .dump();
}

Result<CaseOrder> DecodeOrder(const std::string& payload) {
  return Decode(payload, [](const Json& json) {
    return CaseOrder{json.at("origin").get<std::string>(), json.at("text").get<std::string>(),
                     json.at("ranks").get<int>(),          json.at("backend").get<std::string>(),
                     json.at("seed").get<std::uint64_t>(), MembershipOf(json.at("membership"))};
  });
}

}  // namespace lockstep::stress::run
