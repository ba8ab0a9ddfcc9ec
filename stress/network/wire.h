// What leaves this host for others, through a wire that is as bad as it is told: a thread in an
// agent.
#ifndef LOCKSTEP_STRESS_NETWORK_WIRE_H_
#define LOCKSTEP_STRESS_NETWORK_WIRE_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "stress/network/network_rule.h"

namespace lockstep::stress::network {

class Wire {
 public:
  virtual ~Wire() = default;  // ends the thread; every packet goes its usual way again
  // kEnvironment, one line: why there can be none here.
  static Result<std::unique_ptr<Wire>> Start();

  // What was done, in one line that names the mechanism; or why it cannot be done here, and was
  // not. `any_interface`: also to interfaces that are not of test hosts.
  virtual Result<std::string> Apply(const NetworkRule& rule, bool any_interface) = 0;
  virtual void Heal(int rule) = 0;
  virtual int fd() const = 0;  // readable when rules met their first packet
  virtual std::vector<int> TakeTouched() = 0;
};

}  // namespace lockstep::stress::network

#endif  // LOCKSTEP_STRESS_NETWORK_WIRE_H_
