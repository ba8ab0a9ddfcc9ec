#include "core/control/agent_fault.h"

namespace lockstep::control {

void Put(Encoder& encoder, const AgentFault& fault) {
  encoder.Put(static_cast<std::uint8_t>(fault.kind)).Put(fault.amount).Put(fault.duration_seconds);
}

bool Get(Decoder& decoder, AgentFault& fault) {
  const auto kind = decoder.Get<std::uint8_t>();
  fault.kind = static_cast<AgentFault::Kind>(kind);
  fault.amount = decoder.Get<double>();
  fault.duration_seconds = decoder.Get<double>();
  return decoder.ok() && kind <= static_cast<std::uint8_t>(AgentFault::Kind::kSetup);
}

}  // namespace lockstep::control
