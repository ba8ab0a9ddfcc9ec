// What leaves this host for others, through a wire that is as bad as it is told: a thread in an
// agent.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/fd.h"
#include "core/base/status.h"
#include "stress/network/network_rule.h"
#include "stress/network/wire_device.h"
#include "stress/network/wire_queue.h"

namespace lockstep::stress::network {

class Wire {
 public:
  // kEnvironment, one line: why there can be none here.
  static Result<std::unique_ptr<Wire>> Start();
  ~Wire();  // ends the thread; every packet goes its usual way again

  // What was done, in one line that names the mechanism; or why it cannot be done here, and was
  // not. `any_interface`: also to interfaces that are not of test hosts.
  Result<std::string> Apply(const NetworkRule& rule, bool any_interface);
  void Heal(int rule);
  int fd() const { return news_.get(); }  // readable when rules met their first packet
  std::vector<int> TakeTouched();

 private:
  Wire(std::unique_ptr<WireDevice> device, Fd wake, Fd news);
  void Run();
  void ReadPackets(std::vector<char>& scratch);
  void SendDue();
  void Await(std::optional<std::int64_t> due_ns);

  std::unique_ptr<WireDevice> device_;
  const Fd wake_;
  const Fd news_;
  std::mutex mutex_;  // of everything below, and of the ways of the device
  WireQueue queue_;
  std::vector<int> touched_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace lockstep::stress::network
