// example_nights DIRECTORY: writes 60 nights of four machines for tests, two launches a night. On
// node1 a new driver makes every case 10 % slower in night 20. One more case becomes 3 % slower in
// night 45. Node2 has one bad night; node4 is 12 % slower than the others all the time.
#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <numbers>
#include <string>

#include "core/base/random.h"
#include "core/base/status.h"
#include "results/compare/testing/example_launch.h"
#include "results/store/store.h"

namespace lockstep::results::compare {
namespace {

constexpr int kNights = 60;
constexpr int kMachines = 4;

double Noise(Random& random) {  // 1 %; Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  return std::exp(0.01 * radius * std::cos(2 * std::numbers::pi * random.Uniform()));
}

double Factor(int machine, int night) {
  if (machine == 0) return night >= 20 ? 1.10 : 1.0;
  if (machine == 1) return night == 30 ? 1.5 : 1.0;
  return machine == 3 ? 1.12 : 1.0;
}

Status Write(const std::string& directory) {
  Random random(5);
  std::uint64_t number = 0;
  for (int night = 0; night < kNights; ++night) {
    for (int machine = 0; machine < kMachines; ++machine) {
      for (int launch = 0; launch < 2; ++launch) {
        ExampleLaunch one;
        one.number = number++;
        one.started_at = TimeOf(night, 120 + 10 * launch);
        one.host = fmt::format("node{}", machine + 1);
        one.driver = machine == 0 && night >= 20 ? "580" : "570";
        const double factor = Factor(machine, night);
        const double more = machine == 0 && night >= 45 ? 1.03 : 1.0;
        one.medians_ns = {{"all_reduce/f32/sum/8", 1e3 * factor * Noise(random)},
                          {"all_reduce/f32/sum/4096", 4e3 * factor * more * Noise(random)},
                          {"all_reduce/f32/sum/1048576", 2e5 * factor * Noise(random)}};
        LOCKSTEP_RETURN_IF_ERROR(store::WriteRun(
            RunOf(one), fmt::format("{}/{}/{:04}.h5", directory, one.host, one.number)));
      }
    }
  }
  return OkStatus();
}

}  // namespace
}  // namespace lockstep::results::compare

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "example_nights: name a directory to write to\n");
    return static_cast<int>(lockstep::ExitCode::kUsage);
  }
  const lockstep::Status status = lockstep::results::compare::Write(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return static_cast<int>(lockstep::ExitCodeOf(status.code()));
}
