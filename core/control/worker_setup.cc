#include "core/control/worker_setup.h"

#include <cstdint>

namespace lockstep::control {
void Put(Encoder& encoder, const WorkerSetup& setup) {
  encoder.Put(static_cast<std::uint32_t>(setup.environment.size()));
  for (const std::string& variable : setup.environment) encoder.Text(variable);
  encoder.Put(static_cast<std::uint8_t>(setup.movable_clock));
  encoder.Put(static_cast<std::uint8_t>(setup.private_shm));
}

bool Get(Decoder& decoder, WorkerSetup& setup) {
  const auto variables = decoder.Get<std::uint32_t>();
  setup.environment.clear();
  for (std::uint32_t i = 0; i < variables && decoder.ok(); ++i) {
    setup.environment.push_back(decoder.Text());
  }
  setup.movable_clock = decoder.Get<std::uint8_t>() != 0;
  setup.private_shm = decoder.Get<std::uint8_t>() != 0;
  return decoder.ok();
}

}  // namespace lockstep::control
