#include "stress/harness/protocol.h"

#include <nlohmann/json.hpp>

namespace lockstep {
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

}  // namespace

std::string EncodeOrder(const CaseOrder& order) {
  return Json({{"origin", order.origin},
               {"text", order.text},
               {"ranks", order.ranks},
               {"backend", order.backend},
               {"seed", order.seed}})
      .dump();
}

Result<CaseOrder> DecodeOrder(const std::string& payload) {
  return Decode(payload, [](const Json& json) {
    return CaseOrder{json.at("origin").get<std::string>(), json.at("text").get<std::string>(),
                     json.at("ranks").get<int>(), json.at("backend").get<std::string>(),
                     json.at("seed").get<std::uint64_t>()};
  });
}

std::string EncodeReport(const ProgramReport& report) {
  // Messages of a library need not be UTF-8.
  return Json({{"code", static_cast<int>(report.status.code())},
               {"message", report.status.message()},
               {"where", report.where},
               {"iteration", report.iteration},
               {"checked", report.checked},
               {"wrong_data", report.wrong_data},
               {"gradients", report.gradients},
               {"figures", report.figures}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<ProgramReport> DecodeReport(const std::string& payload) {
  return Decode(payload, [](const Json& json) {
    ProgramReport report;
    const auto code = static_cast<StatusCode>(json.at("code").get<int>());
    if (code != StatusCode::kOk) {
      report.status = Status(code, json.at("message").get<std::string>());
    }
    report.where = json.at("where").get<std::string>();
    report.iteration = json.at("iteration").get<std::int64_t>();
    report.checked = json.at("checked").get<std::int64_t>();
    report.wrong_data = json.at("wrong_data").get<std::string>();
    report.gradients = json.at("gradients").get<std::string>();
    report.figures = json.at("figures").get<std::map<std::string, double>>();
    return report;
  });
}

}  // namespace lockstep
