// What the worker's connect() and the relay say to each other. Plain data: the shim knows only
// libc.
#pragma once

#include <stdint.h>

namespace lockstep::stress::links {

inline constexpr char kLinksVariable[] = "LOCKSTEP_LINKS";

inline constexpr uint64_t kConnects = 0x736b6e694c736b4cu;  // to `address`
inline constexpr uint64_t kListens = 0x736e65746c736b4cu;   // on `address`; nothing follows
struct LinkHello {
  uint64_t magic = kConnects;
  alignas(8) unsigned char address[32] = {};  // a sockaddr_in or sockaddr_in6
};
struct LinkAnswer {
  int32_t error = 0;  // errno of the connection to the destination
};

}  // namespace lockstep::stress::links
