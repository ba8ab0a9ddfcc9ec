// What a worker tells of what it runs on, for the environment of the run.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::worker {

// What only a worker can tell, as it tells it: the library under test, its version, the device, and
// what whoever reads figures must know of it (may be empty), and who notes on the device what it
// begins and ends (empty: nobody). A JSON object of strings.
std::string WorkerFacts(std::string_view backend, const std::string& version,
                        std::string_view device, const std::string& remark,
                        const std::string& device_marks = "");

}  // namespace lockstep::worker
