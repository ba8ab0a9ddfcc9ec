// Both ends of a connection prove that they know the launch's secret, which is never sent:
// challenge and response with HMAC-SHA-256 (RFC 2104) of OpenSSL. What is protected by it, and what
// is not, is in docs/security.md.
#pragma once

#include <string>
#include <string_view>

#include "core/control/frames.h"

namespace lockstep::control::rendezvous {

inline constexpr std::size_t kSecretBytes = kNonceBytes;

// kNonceBytes of the kernel's randomness.
std::string RandomBytes();

// kNonceBytes each, new for every connection: so no proof serves twice.
struct Nonces {
  std::string follower;
  std::string coordinator;
};

// The two never equal each other: neither end can send back what it was told.
std::string ProofOfCoordinator(std::string_view secret, const Nonces& nonces);
// Covers what the follower asks for, too.
std::string ProofOfFollower(std::string_view secret, const Nonces& nonces,
                            std::string_view request);

// Takes the same time wherever the difference is.
bool IsSameProof(std::string_view a, std::string_view b);

}  // namespace lockstep::control::rendezvous
