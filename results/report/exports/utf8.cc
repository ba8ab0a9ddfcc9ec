#include "results/report/exports/utf8.h"

#include <nlohmann/json.hpp>

namespace lockstep::results::report::exports {

// nlohmann::json knows how: written with replacement and read back, a text is valid.
std::string Utf8(std::string_view text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace lockstep::results::report::exports
