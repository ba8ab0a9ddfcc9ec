#include "stress/cases/program_report.h"

#include <nlohmann/json.hpp>

namespace lockstep::stress::cases {

using Json = nlohmann::ordered_json;

std::string EncodeReport(const ProgramReport& report) {
  // Messages of a library need not be UTF-8.
  return Json({{"code", static_cast<int>(report.status.code())},
               {"message", report.status.message()},
               {"where", report.where},
               {"iteration", report.iteration},
               {"checked", report.checked},
               {"wrong_data", report.wrong_data},
               {"gradients", report.gradients},
               {"figures", report.figures},
               {"completed", report.completed}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<ProgramReport> DecodeReport(const std::string& payload) {
  const Json json = Json::parse(payload, nullptr, false);
  try {
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
    report.completed = json.at("completed").get<std::int64_t>();
    return report;
  } catch (const Json::exception& error) {
    return SystemFailed(std::string("a message of a worker makes no sense: ") + error.what());
  }
}

}  // namespace lockstep::stress::cases
