// An agent's part in faults of the network: the wire of its host, if this agent is to have one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "stress/network/wire.h"

namespace lockstep::stress::links {

class NetworkSide {
 public:
  // `any_interface`: may interfere with interfaces that are not of test hosts.
  explicit NetworkSide(bool any_interface);

  // An order of link_orders.h; false: it is not for us.
  bool Obey(std::string_view verb, std::string_view rest);
  void Clear() { wire_.reset(); }
  int fd() const { return all_.get(); }  // readable when there are reports
  std::vector<std::string> TakeReports();

 private:
  void Apply(std::string_view text);
  void Tell(std::string report);

  const bool any_interface_;
  Fd all_;  // of epoll(7): the bell and the wire's own
  Fd bell_;
  std::unique_ptr<network::Wire> wire_;  // none: no rule was ever applied in this lifetime
  std::vector<std::string> reports_;
};

}  // namespace lockstep::stress::links
