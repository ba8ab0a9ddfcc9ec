// Takes the packets that leave this host for some addresses: a TUN device with a route for each
// (Documentation/networking/tuntap.rst). What comes back out of here leaves by the interface that
// was the way before.
//
// Nothing has to be restored: the device, and with it the routes over it, ends with its descriptor,
// whatever ends the process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "core/base/fd.h"
#include "core/base/status.h"

namespace lockstep::stress::network {

// The alias (ip link set … alias) of interfaces that are there to be interfered with:
// scripts/test_hosts gives it to those of its hosts.
inline constexpr char kTestInterfaceAlias[] = "lockstep-test-host";

class WireDevice {
 public:
  // kEnvironment, one line: there are no TUN devices here, or this process may not make one.
  static Result<std::unique_ptr<WireDevice>> Open();

  // From now on packets to `address` come here. Refuses (kEnvironment) to take those that leave by
  // an interface without the alias, unless `any_interface`. Idempotent.
  Status Divert(std::uint32_t address, bool any_interface);

  int fd() const { return tun_.get(); }  // a packet a read; does not block
  const std::string& name() const { return name_; }
  // The interface by which packets to `address`, which was diverted, leave.
  std::string InterfaceOf(std::uint32_t address) const;

  void Send(std::span<const char> packet, std::uint32_t to) const;
  // As if it had come from outside.
  void Deliver(std::span<const char> packet) const;

 private:
  struct Way {
    int interface = 0;
    std::uint32_t source = 0;
  };
  WireDevice() = default;

  Fd tun_;
  Fd raw_;
  std::string name_;
  int index_ = 0;
  std::map<std::uint32_t, Way> ways_;
};

}  // namespace lockstep::stress::network
