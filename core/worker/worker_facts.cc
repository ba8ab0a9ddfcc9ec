#include "core/worker/worker_facts.h"

#include <nlohmann/json.hpp>

namespace lockstep::worker {

std::string WorkerFacts(std::string_view backend, const std::string& version,
                        std::string_view device, const std::string& remark,
                        const std::string& device_marks) {
  nlohmann::ordered_json facts = {{"backend", std::string(backend)},
                                  {"backend_version", version},
                                  {"device", std::string(device)}};
  if (!remark.empty()) facts["backend_remark"] = remark;
  if (!device_marks.empty()) facts["device_marks"] = device_marks;
  return facts.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace lockstep::worker
