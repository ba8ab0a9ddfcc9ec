#include "core/launch/worker_setup.h"

#include <cstdint>

namespace lockstep {
namespace {

void PutTexts(Encoder& encoder, const std::vector<std::string>& texts) {
  encoder.Put(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) encoder.Text(text);
}

void GetTexts(Decoder& decoder, std::vector<std::string>& texts) {
  const auto size = decoder.Get<std::uint32_t>();
  texts.clear();
  for (std::uint32_t i = 0; i < size && decoder.ok(); ++i) texts.push_back(decoder.Text());
}

}  // namespace

void Put(Encoder& encoder, const WorkerSetup& setup) {
  PutTexts(encoder, setup.environment);
  PutTexts(encoder, setup.preload);
  encoder.Put(static_cast<std::uint8_t>(setup.private_shm));
}

bool Get(Decoder& decoder, WorkerSetup& setup) {
  GetTexts(decoder, setup.environment);
  GetTexts(decoder, setup.preload);
  setup.private_shm = decoder.Get<std::uint8_t>() != 0;
  return decoder.ok();
}

}  // namespace lockstep
