#include "core/comm/sim/wires.h"

#include <algorithm>

namespace lockstep::comm::sim {

std::size_t Wires::Send(int from, int to, const std::byte* data, std::size_t bytes) {
  parts_.emplace_back();
  const std::size_t handle = parts_.size() - 1;
  Wire& wire = wires_[{from, to}];
  wire.sends.push_back({handle, {data, data + bytes}, nullptr, bytes});
  Match(wire);
  return handle;
}

std::size_t Wires::Receive(int at, int from, std::byte* room, std::size_t bytes) {
  parts_.emplace_back();
  const std::size_t handle = parts_.size() - 1;
  Wire& wire = wires_[{from, at}];
  wire.receives.push_back({handle, {}, room, bytes});
  Match(wire);
  return handle;
}

void Wires::Match(Wire& wire) {
  while (!wire.sends.empty() && !wire.receives.empty()) {
    const Waiting& send = wire.sends.front();
    const Waiting& receive = wire.receives.front();
    std::copy_n(send.data.begin(), std::min(send.bytes, receive.bytes), receive.room);
    parts_[send.handle] = parts_[receive.handle] = {true, send.bytes};
    wire.sends.pop_front();
    wire.receives.pop_front();
  }
}

}  // namespace lockstep::comm::sim
